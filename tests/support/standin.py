"""An engine without a GPU: the model's times with noise; it hangs, crashes and lies when told to.

STANDIN_FAULTS: a JSON object of block_k to `hang`, `crash`, `wrong` or `raise`.
STANDIN_LOG: a path; `.measured` and `.prepared` behind it get a line for each such call.
"""

import json
import os
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import wsjax
from wsjax.schema import COLUMNS

NOISE = 0.01


class StandIn:
    name = "standin"

    def __init__(self) -> None:
        self._faults = json.loads(os.environ.get("STANDIN_FAULTS", "{}"))
        self._predicted({"m": 64, "n": 64, "k": 64, "block_m": 64, "block_n": 64, "block_k": 32})

    def _predicted(self, configuration: Mapping[str, Any]) -> float:
        return wsjax.predict(pd.DataFrame([configuration]), "toy")["time_us"].item()

    def _log(self, what: str, row: Mapping[str, Any]) -> None:
        with Path(f"{os.environ['STANDIN_LOG']}.{what}").open("a") as file:
            file.write(json.dumps([row["m"], row["block_k"], row["run"]]) + "\n")

    def facts(self) -> dict[str, Any]:
        return {"device": "toy", "sms": 4}

    def prepare(self, row: Mapping[str, Any]) -> Callable[..., None]:
        self._log("prepared", row)
        if self._faults.get(str(row["block_k"])) == "raise":
            raise ValueError("no such kernel\nptxas: too many registers")
        return lambda *_: None

    def measure(self, row: Mapping[str, Any]) -> dict[str, Any]:
        self._log("measured", row)
        match self._faults.get(str(row["block_k"])):
            case "hang":
                time.sleep(1_000)
            case "crash":
                os.abort()
            case "wrong":
                return {"status": "incorrect", "rel_err": 0.5}
        configuration = {name: row[name] for name in COLUMNS}
        key = zlib.crc32(json.dumps([configuration, row["run"]]).encode())
        time_us = self._predicted(configuration) * (1 + NOISE * (key / 2**32 - 0.5))
        return {
            "status": "ok",
            "time_us_measured": time_us,
            "time_us_measured_p10": time_us * 0.99,
            "time_us_measured_p90": time_us * 1.01,
            "reps": 10,
            "sm_ghz_measured": 1.5,
        }
