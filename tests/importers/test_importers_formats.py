"""Each format of measurements that wsjax imports, on real text or on text in its documented form.

From other projects, excerpts of data only: tests/data/cutlass_profiler_*.txt, cutlass_profiler
output quoted in microsoft/superbenchmark's tests (commit 700d6501, MIT);
kernel_tuner_rtx3090_gemm.json, the first 8 entries of a cache in AutoTuningAssociation/
benchmark_hub (8eeb99e, MIT); aiconfigurator_h200_vllm_bf16.parquet, 60 rows of a table in
ai-dynamo/aiconfigurator (095f58a, Apache-2.0). All other text here was written for these tests.
"""

import json

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import DATA

from wsjax.errors import InputError
from wsjax.importers import Imported, kernel_names, read
from wsjax.importers.outcome import REASONS
from wsjax.schema.columns import COLUMNS

SM90 = "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16"
PINGPONG = f"{SM90}_128x128x64_2x1x1_0_tnn_align8_warpspecialized_pingpong_epi_tma"
PROFILER = (
    "Problem,Provider,OperationKind,Operation,Disposition,Status,gemm_kind,m,n,k,A,B,C,D,"
    "split_k_mode,split_k_slices,batch_count,raster_order,swizzle_size,op_class,accum,cta_m,cta_n,"
    "cta_k,cluster_m,cluster_n,cluster_k,stages,warps_m,warps_n,warps_k,Bytes,Flops,Runtime,GFLOPs"
)
NEEDED = {*COLUMNS, "time_us_measured", "time_us_measured_p10", "time_us_measured_p90", "reps"}


def profiled(operation=PINGPONG, *, outcome="passed,success", runtime="0.5", **changed) -> str:
    """One of the profiler's rows."""
    row: dict = {"m": 512, "n": 1024, "k": 256, "a": "bf16:row", "b": "bf16:column"}
    row |= {"d": "bf16:column"} | changed
    return (
        f"1,CUTLASS,gemm,{operation},{outcome},universal,{row['m']},{row['n']},{row['k']},"
        f"{row['a']},{row['b']},void:column,{row['d']},serial,1,1,heuristic,1,tensorop,f32,"
        f"128,128,64,1,1,1,0,4,1,1,1,{row.get('flops', '')},{runtime},1"
    )


def imported(tmp_path, text: str, name="table.txt", **options) -> Imported:
    """What is read of a file with this text; its counts add up, and its columns are all there."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = read(path, **options)
    check(found)
    return found


def check(found: Imported) -> None:
    report, table = found.report, found.table
    assert report.read == report.kept + sum(report.excluded.values()) == len(table)
    assert set(report.excluded) <= REASONS.keys()
    assert set(table.columns) >= {*NEEDED, "status", "source", "excluded"} - {"stages"}
    kept = table.loc[(table["excluded"] == "").to_numpy()]
    assert not kept[[name for name in COLUMNS if name in kept]].isna().to_numpy().any()
    assert (kept["time_us_measured"].to_numpy() > 0).all()


def row(found: Imported, index=0) -> dict:
    return found.table.iloc[index].to_dict()


def notes(found: Imported) -> str:
    return "\n".join(found.report.notes)


def test_cutlass_profiler_sample():
    found = read(DATA / "cutlass_profiler_tf32_tc.txt")
    check(found)
    assert (found.report.format, found.report.kept) == ("cutlass_profiler", 4)
    first = row(found)
    tile = (first["block_m"], first["block_n"], first["block_k"], first["stages"])
    assert tile == (256, 128, 16, 3)
    assert (first["dtype_in"], first["schedule"], first["math_warps"]) == ("tf32", "serial", 8)
    assert first["time_us_measured"] == pytest.approx(88576.4)
    assert found.table["layout"].tolist() == ["tt", "tn", "nt", "nn"]
    wrong = read(DATA / "cutlass_profiler_fp16_tc.txt").report
    assert (wrong.kept, wrong.excluded) == (0, {"incorrect": 4})


def test_cutlass_profiler_outcomes(tmp_path):
    rows = [
        profiled(),
        profiled(runtime="0.6"),
        profiled(runtime="0.5"),
        profiled(m=640, outcome="not_verified,success"),
        profiled(outcome="incorrect,success"),
        profiled(outcome="not_run,invalid", runtime=""),
        profiled(m=0),
        profiled(a="f64:row", b="f64:column"),
        profiled(a="e4m3:row"),
        profiled(runtime="0"),
        profiled(runtime="inf"),
        profiled(runtime=""),
        profiled().replace(",gemm,", ",conv2d,"),
        profiled().rpartition("universal")[0],
        profiled() + ",7,8",
    ]
    log = "\n=====\n  Problem ID: 1\n\n        Provider: CUTLASS\n   OperationKind: gemm\n\n"
    found = imported(tmp_path, f"{log}CSV Results:\n\n{PROFILER}\n" + "\n".join(rows) + "\n")
    assert found.report.format == "cutlass_profiler"
    assert found.table["excluded"].tolist() == [
        *("", "duplicate", "fake_repeat", "", "incorrect", "failed", "no_problem"),
        *("unsupported", "unsupported", "zero", "infinite", "no_time", "not_gemm"),
        *("malformed", "malformed"),
    ]
    assert found.table["status"].tolist()[1:3] == ["ok", "ok"]
    first = row(found)
    assert (first["schedule"], first["math_warps"], first["mma_in_flight"]) == ("pingpong", 8, 1)
    assert (first["cluster_m"], first["cluster_n"]) == (2, 1)  # its column says 1
    assert (first["stages"], first["layout"], first["dtype_out"]) == (6, "nt", "bf16")
    assert "lines before the header" in notes(found)


def test_cutlass_headers_of_several_versions_in_one_file(tmp_path):
    old = (
        "Problem,Provider,OperationKind,Operation,Disposition,Status,gemm_kind,m,n,k,A,B,C,"
        "cta_m,cta_n,cta_k,stages,Runtime,GFLOPs"
    )
    name = "cutlass_tensorop_h16816gemm_256x128_32x3_tn_align8"
    older = f"1,CUTLASS,gemm,{name},passed,success,universal,8,16,32,f16:row,f16:column,f16:row"
    tagged = "gpu," + PROFILER
    text = f"{old}\n{older},256,128,32,3,2,1\n\n{tagged}\nh100,{profiled()}\n"
    found = imported(tmp_path, text)
    assert found.table["time_us_measured"].tolist() == [2000.0, 500.0]
    assert found.table["dtype_in"].tolist() == ["fp16", "bf16"]
    assert found.table["schedule"].tolist() == ["serial", "pingpong"]


def test_cutlass_swapped_sizes_are_noticed(tmp_path):
    m, n, k = 512, 1024, 256
    rows = [profiled(m=m * i, flops=2 * m * i * n * k + 2 * m * i * k) for i in (1, 2, 3)]
    found = imported(tmp_path, "\n".join([PROFILER, *rows]))
    assert "n and k look swapped: column 'flops' fits 100%" in notes(found)
    rows = [profiled(m=m * i, flops=2 * m * i * n * k + 2 * m * i * n) for i in (1, 2, 3)]
    assert "swapped" not in notes(imported(tmp_path, "\n".join([PROFILER, *rows])))


def test_kernel_names():
    assert kernel_names.parse(
        f"{SM90}_64x256x64_1x2x1_4_tnt_align8_warpspecialized_epi_nosmem"
    ) == {
        **{"block_m": 64, "block_n": 256, "block_k": 64, "cluster_m": 1, "cluster_n": 2},
        **{"layout": "nt", "schedule": "serial", "math_warps": 4, "mma_in_flight": 1, "stages": 4},
        **{"write_back": "direct"},
    }
    cooperative = kernel_names.parse(
        PINGPONG.replace("pingpong", "cooperative").replace("_tnn_", "_ntn_")
    )
    assert (cooperative["schedule"], cooperative["layout"]) == ("cooperative", "tn")
    blackwell = "cutlass3x_sm100_tensorop_s256x128x16gemm_bf16_bf16_f32_void_bf16"
    two = kernel_names.parse(f"{blackwell}_256x128x64_2x1x1_0_tnt_align8_2sm_epi_tma")
    assert (two["block_m"], two["schedule"], "stages" in two) == (128, "persistent", False)
    template = (
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, "
        "int, int>, cutlass::gemm::collective::CollectiveMma<"
        "cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<(int)5, cute::tuple<cute::C<(int)2>, "
        "cute::C<(int)1>, cute::C<(int)1>>, cutlass::gemm::KernelTmaWarpSpecializedCooperative>, "
        "cute::tuple<cute::C<(int)128>, cute::C<(int)256>, cute::C<(int)64>>, cutlass::bfloat16_t"
    )
    assert kernel_names.parse(template) == {
        **{"stages": 5, "cluster_m": 2, "cluster_n": 1, "block_m": 128, "block_n": 256},
        **{"block_k": 64, "schedule": "cooperative", "math_warps": 8, "mma_in_flight": 1},
    }
    assert kernel_names.parse("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x4_tn") == {}


def test_kernel_tuner_sample(tmp_path):
    path = DATA / "kernel_tuner_rtx3090_gemm.json"
    found = read(path)
    check(found)
    assert (found.report.format, found.report.kept) == ("kernel_tuner", 8)
    first = row(found)
    assert (first["m"], first["n"], first["k"]) == (4096, 4096, 4096)  # k from the rate
    assert (first["block_m"], first["block_n"], first["block_k"]) == (16, 16, 32)
    assert (first["dtype_in"], first["reps"]) == ("fp32", 8)
    assert first["time_us_measured"] == pytest.approx(46072.413)
    assert first["time_us_measured_p10"] < first["time_us_measured"]
    text = path.read_text()
    whole = text.index("}", text.index('"timestamp"', len(text) // 2)) + 1
    for end in (whole, whole + 1, whole + 30, whole + 300):
        cut = imported(tmp_path, text[:end])
        assert 0 < cut.report.kept < 8
        assert "the file ends early" in notes(cut)
        pd.testing.assert_frame_equal(
            cut.table.drop(columns="source"),
            found.table.drop(columns="source").head(cut.report.read),
            check_categorical=False,
            check_dtype=False,
        )


def test_kernel_tuner_failures(tmp_path):
    entry = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_stages": 3}
    times = [0.5, "InvalidConfig", 1e20, None, float("inf"), 0.5]
    cache = {str(i): entry | {"time": t, "VWM": i % 5} for i, t in enumerate(times)}
    cache["6"] = entry | {"time": 0.25, "times": [0.25] * 7, "VWM": 6}
    head = {"device_name": "A100", "kernel_name": "gemm", "problem_size": [512, 256, 128]}
    text = json.dumps(head | {"tune_params_keys": list(entry), "objective": "time", "cache": cache})
    found = imported(tmp_path, text)
    assert found.table["excluded"].tolist() == [
        *("", "failed", "failed", "no_time", "failed", "fake_repeat", ""),
    ]
    last = row(found, -1)
    assert (last["k"], last["reps"], last["device"], last["VWM"]) == (128, 1, "A100", 6)
    assert "1 rows repeat one time bit for bit" in notes(found)


def test_t4(tmp_path):
    def result(i, **changed):
        return {
            "timestamp": "2026-01-01",
            "configuration": {"MWG": 64, "NWG": 64, "KWG": 32, "VWM": i, "PRECISION": 16},
            "times": {"compilation_time": 100.0, "runtimes": [1.0, 1.1, 1.2]},
            "invalidity": "correct",
            "correctness": 1,
            "measurements": [{"name": "time", "value": 1100.0, "unit": "us"}],
        } | changed

    results = [
        result(0),
        result(1, measurements=[]),
        result(2, invalidity="compile", times={}, measurements=[]),
        result(3, correctness=0),
        result(4, invalidity="timeout"),
    ]
    sizes = {"m": "512", "n": "512", "k": "64"}
    text = json.dumps({"schema_version": "1.0.0", "results": results})
    found = imported(tmp_path, text, mapping=sizes)
    assert found.table["excluded"].tolist() == ["", "", "failed", "incorrect", "failed"]
    assert found.table["time_us_measured"].tolist()[:2] == [1100.0, pytest.approx(1100.0)]
    assert (row(found)["dtype_in"], row(found)["k"], row(found)["reps"]) == ("fp16", 64, 3)
    assert imported(tmp_path, text).report.excluded["no_problem"] == 2


def test_triton(tmp_path):
    tile = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8}
    old = {"kwargs": tile, "num_warps": 8, "num_stages": 3, "num_ctas": 1, "maxnreg": None}
    flat = {**tile, "num_warps": 4, "num_stages": 4}
    text = json.dumps(
        {
            "key": [4096, 2048, 1024, "torch.float16", "torch.float16"],
            "configs_timings": [
                [old, [0.5, 0.48, 0.55]],
                [flat, 0.25],
                [old | {"num_warps": 2}, [float("inf")] * 3],
                [old, [0.6, 0.5, 0.7]],
            ],
        }
    )
    found = imported(tmp_path, text, name="matmul_kernel.autotune.json")
    assert found.report.format == "triton"
    assert found.table["excluded"].tolist() == ["", "", "failed", "duplicate"]
    first = row(found)
    assert (first["m"], first["n"], first["k"], first["group_m"]) == (4096, 2048, 1024, 8)
    assert (first["dtype_in"], first["kernel"]) == ("fp16", "matmul_kernel")
    assert (first["schedule"], first["math_warps"], first["stages"]) == ("serial", 8, 3)
    assert (first["time_us_measured"], first["time_us_p20"]) == (500.0, 480.0)
    assert found.table["time_us_measured"].tolist()[1] == 250.0
    swapped = imported(tmp_path, text, mapping={"n": "key_2", "k": "key_1"})
    assert (row(swapped)["n"], row(swapped)["k"]) == (1024, 2048)
    cut = imported(tmp_path, text[: text.index("0.25") + 2])
    assert cut.report.read == 1
    assert "ends early" in notes(cut)


INDUCTOR = [
    {"invoke": "(512, 256, 1024)"},
    {
        "(512, 256, 1024)": [
            {"type": "cublas", "time": 0.02},
            *(
                {"type": "triton", "time": time, "BLOCK_M": 64, "BLOCK_K": 32, "BLOCK_N": 128}
                | {"num_stages": 3, "num_warps": 4}
                for time in (0.03, 0.031, 0.03, None, float("inf"))
            ),
        ]
    },
]


def test_inductor_json(tmp_path):
    found = imported(tmp_path, json.dumps(INDUCTOR, indent=4), mapping={"dtype_in": "fp16"})
    assert found.report.format == "inductor"
    assert found.table["excluded"].tolist() == [
        *("no_tile", "", "duplicate", "fake_repeat", "no_time", "failed"),
    ]
    tile = row(found, 1)
    assert (tile["m"], tile["k"], tile["n"]) == (512, 256, 1024)
    assert (tile["block_m"], tile["block_k"], tile["block_n"]) == (64, 32, 128)
    assert (tile["time_us_measured"], tile["dtype_in"]) == (30.0, "fp16")
    another = {"(64, 64, 64)": [{"type": "cublas", "time": 0.01}]}
    cut = imported(tmp_path, json.dumps([*INDUCTOR, another])[:-9])
    assert cut.report.read == 6
    assert "ends early" in notes(cut)


AUTOTUNE = """\
W1129 10:00:00 some other line
AUTOTUNE mm(512x256, 256x1024)
strides: [256, 1], [1, 256]
dtypes: torch.bfloat16, torch.bfloat16
  triton_mm_12 0.0123 ms 100.0% ACC_TYPE='tl.float32', BLOCK_K=32, BLOCK_M=64, BLOCK_N=128, \
GROUP_M=8, num_stages=3, num_warps=4
  mm 0.0150 ms 82.0%
  triton_mm_7 inf ms 0.0% BLOCK_K=64, BLOCK_M=128, BLOCK_N=128, GROUP_M=8, num_stages=5, num_warps=8
SingleProcess AUTOTUNE benchmarking takes 1.2 seconds and 0.5 seconds precompiling
AUTOTUNE addmm(16x1000, 16x512, 512x1000)
strides: [0, 1], [512, 1], [1000, 1]
dtypes: torch.float32, torch.float32, torch.float32
  bias_addmm 0.0164 ms 100.0%
  triton_mm_3 0.0200 ms 82.0% ALLOW_TF32=True, BLOCK_K=16, BLOCK_M=16, BLOCK_N=64, num_stages=1, \
num_warps=2
AUTOTUNE bmm(8x59x64, 8x64x59)
  triton_bmm_9 0.0236 ms 93.1%
AUTOTUNE convolution(1x3x8x8, 4x3x3x3)
  convolution 0.1000 ms 100.0%
"""


def test_inductor_log(tmp_path):
    found = imported(tmp_path, AUTOTUNE)
    assert found.report.format == "inductor"
    assert found.table["excluded"].tolist() == [
        *("", "no_tile", "failed", "no_tile", "", "no_tile", "not_gemm"),
    ]
    first, addmm, bmm = row(found), row(found, 4), row(found, 5)
    assert (first["m"], first["k"], first["n"], first["layout"]) == (512, 256, 1024, "nt")
    assert (first["group_m"], first["stages"], first["kernel"]) == (8, 3, "triton_mm_12")
    assert (addmm["m"], addmm["k"], addmm["n"], addmm["layout"]) == (16, 512, 1000, "nn")
    assert (addmm["dtype_in"], addmm["dtype_out"]) == ("tf32", "fp32")
    assert (bmm["batch"], bmm["m"], bmm["k"], bmm["n"]) == (8, 59, 64, 59)


def heuristic(capability=8) -> str:
    about = {"shared_memory": 166912, "device_capa": [capability, 0], "numerical_features": ["m"]}
    choice = "type=triton_BLOCK-M=16_BLOCK-K=32_BLOCK-N=64_numstages=3_numwarps=2"
    lines = [
        json.dumps(about),
        "m,k,n,mat1_dtype,mat2_dtype,mat1_iscontig,mat2_iscontig,using_tf32,choice,feedback",
        f"16,512,1024,torch.bfloat16,torch.bfloat16,True,False,False,{choice},0.01",
        f"16,512,1024,torch.float32,torch.float32,True,True,True,{choice},0.02",
        f"16,512,1024,torch.float32,torch.float32,True,True,False,{choice},0.03",
        f"16,512,1024,torch.bfloat16,torch.int8,True,False,False,{choice},0.02",
        "16,512,1024,torch.bfloat16,torch.bfloat16,True,False,False,extern_mm,0.02",
        f"16,512,1024,torch.bfloat16,torch.bfloat16,True,False,False,{choice},inf",
    ]
    return "\n".join(lines) + "\n"


def test_autoheuristic(tmp_path):
    found = imported(tmp_path, heuristic())
    assert found.report.format == "autoheuristic"
    assert found.table["excluded"].tolist() == ["", "", "", "unsupported", "no_tile", "failed"]
    first = row(found)
    assert (first["m"], first["k"], first["n"], first["layout"]) == (16, 512, 1024, "nt")
    assert (first["block_m"], first["block_k"], first["block_n"]) == (16, 32, 64)
    assert (first["stages"], first["math_warps"], first["time_us_measured"]) == (3, 2, 10.0)
    assert (first["group_m"], first["mma_in_flight"], first["schedule"]) == (8, 1, "serial")
    assert found.table["dtype_in"].tolist()[:3] == ["bf16", "tf32", "fp32"]
    assert found.table["layout"].tolist()[1] == "nn"
    assert row(imported(tmp_path, heuristic(9)))["stages"] == 3
    assert "dtype_in is no word or number of ours, first 'mixed': 1; valid: fp32" in notes(found)


def test_aiconfigurator(tmp_path):
    found = read(DATA / "aiconfigurator_h200_vllm_bf16.parquet")
    check(found)
    assert (found.report.format, found.report.excluded) == ("aiconfigurator", {"no_tile": 60})
    first = row(found)
    assert (first["m"], first["n"], first["k"]) == (32768, 65536, 5120)
    assert first["time_us_measured"] == pytest.approx(26896.966, rel=1e-6)
    assert (first["device"], first["dtype_in"]) == ("NVIDIA H200", "bf16")
    head = "framework,version,device,op_name,kernel_source,gemm_dtype,m,n,k,latency\n"
    rows = [
        "VLLM,1,H200,gemm,x,fp8,16,128,256,0.01",
        "VLLM,1,H200,gemm,x,fp8,16,128,256,0.02",
        "VLLM,1,H200,gemm,x,fp8,0,128,256,0.01",
        "VLLM,1,H200,gemm,x,int4_wo,16,128,256,0.01",
    ]
    csv = imported(tmp_path, head + "\n".join(rows)).table
    assert csv["excluded"].tolist() == ["no_tile", "duplicate", "no_problem", "unsupported"]
    assert csv["status"].tolist()[1] == "no_tile"
    assert csv["dtype_in"].tolist()[:2] == ["fp8_e4m3", "fp8_e4m3"]


NSIGHT_SIZES = {"m": "4096", "n": "4096", "k": "1024", "dtype_in": "bf16", "dtype_out": "bf16"}
LONG = """\
==PROF== Connected to process 1234
==PROF== Profiling "kernel" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","{kernel}","Speed","gpu__time_duration.sum","{unit}","{first}"
"0","7","{kernel}","Launch","launch__registers_per_thread","register/thread","168"
"1","7","void fill<float, 4>(float *)","Speed","gpu__time_duration.sum","{unit}","{second}"
"2","7","sm90_xmma_gemm_bf16","Speed","gpu__time_duration.sum","{unit}","{first}"
==PROF== Disconnected from process 1234
"""


@pytest.mark.parametrize(
    ("unit", "first", "second", "us"),
    [
        ("ns", "1,234,567", "9", 1234.567),
        ("nsecond", "1.234.567", "9,5", 1234.567),
        ("us", "1,234.5", "3", 1234.5),
        ("usecond", "1234,5", "3,25", 1234.5),
        ("ms", "1.25", "3", 1250.0),
        ("second", "0.5", "3", 5e5),
    ],
)
def test_nsight_long(tmp_path, unit, first, second, us):
    text = LONG.format(kernel=PINGPONG, unit=unit, first=first, second=second)
    found = imported(tmp_path, text, mapping=NSIGHT_SIZES)
    assert found.report.format == "nsight"
    assert found.table["excluded"].tolist() == ["", "not_gemm", "no_tile"]
    assert row(found)["time_us_measured"] == pytest.approx(us)
    assert (row(found)["schedule"], row(found)["regs"]) == ("pingpong", 168)
    assert imported(tmp_path, text).report.excluded["no_problem"] == 2
    assert "clock-control" in notes(found)


def test_nsight_wide(tmp_path):
    text = (
        "==PROF== Connected to process 1\n"
        '"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"\n'
        '"","","","","","us"\n'
        f'"0","7","{PINGPONG}","(384, 1, 1)","(132, 1, 1)","12.50"\n'
    )
    found = imported(tmp_path, text, mapping=NSIGHT_SIZES)
    assert (found.report.format, found.report.kept) == ("nsight", 1)
    assert row(found)["time_us_measured"] == 12.5


@pytest.mark.parametrize("name", ["cutlass_ws", "gemm_ws"])
def test_our_own_tables(name):
    path = DATA / f"h200_{name}_excerpt.csv.gz"
    found = read(path)
    source = pd.read_csv(path)
    assert found.report.format == "h200"
    ok = (source["status"] == "ok").to_numpy()
    assert (found.table["status"] == "ok").to_numpy().tolist() == ok.tolist()
    assert found.report.kept + found.report.excluded.get("duplicate", 0) == ok.sum()
    for ours in ("m", "block_n", "stages", "smem_bytes"):
        assert found.table[ours].dropna().tolist() == source[ours].dropna().tolist()
    times = found.table[["time_us_measured", "time_us_measured_p10", "time_us_measured_p90"]]
    theirs = source[["time_us_median", "time_us_p10", "time_us_p90"]]
    assert times.fillna(0).to_numpy().tolist() == theirs.fillna(0).to_numpy().tolist()
    assert set(found.table["schedule"]) <= {"serial", "persistent", "pingpong", "cooperative"}


TEXTS = {
    "cutlass_profiler": f"{PROFILER}\n{profiled()}\n{profiled(m=640)}\n",
    "kernel_tuner": (DATA / "kernel_tuner_rtx3090_gemm.json").read_text(),
    "inductor": json.dumps(INDUCTOR),
    "log": AUTOTUNE,
    "autoheuristic": heuristic(),
    "nsight": LONG.format(kernel=PINGPONG, unit="us", first="1,234.5", second="3"),
    "plain": "m,n,k,block_m,block_n,block_k,time_us\n1,2,3,64,64,64,5\n4,5,6,64,64,64,7\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_damaged_text_is_read_or_refused(tmp_path_factory, text, data):
    path = tmp_path_factory.getbasetemp() / "damaged"
    at = data.draw(st.integers(0, len(text)))
    drop = data.draw(st.integers(0, 30))
    put = data.draw(st.text(alphabet='{}[]",:0x\n', max_size=3))
    end = data.draw(st.integers(0, len(text)) | st.just(len(text)))
    path.write_text((text[:at] + put + text[at + drop :])[:end], encoding="utf-8")
    try:
        found = read(path)
    except InputError:
        return
    check(found)
