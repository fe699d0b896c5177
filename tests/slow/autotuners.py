"""The hooks of `wsjax.triton` with the real packages: `make autotuners`. No GPU is needed: Triton's
own pruning is called, and Kernel Tuner's own search space is built; nothing is launched."""

from itertools import product

import kernel_tuner.searchspace  # pyright: ignore[reportMissingImports]
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]

from wsjax.triton import early_config_prune, perf_model, prune_configs_by, restriction

VALUES = {
    "BLOCK_SIZE_M": [64, 128, 256],
    "BLOCK_SIZE_N": [64, 128, 256],
    "BLOCK_SIZE_K": [32, 64, 128],
    "GROUP_SIZE_M": [8],
    "num_stages": [2, 3, 4],
    "num_warps": [4, 8],
}
SIZES = {"M": 4096, "N": 4096, "K": 4096}


def configs() -> list[triton.Config]:
    """All combinations as Triton's configurations."""
    *_, stages, warps = VALUES
    rows = [dict(zip(VALUES, row, strict=True)) for row in product(*VALUES.values())]
    return [
        triton.Config({k: v for k, v in row.items() if k not in (stages, warps)},
                      num_stages=row[stages], num_warps=row[warps])
        for row in rows
    ]  # fmt: skip


@triton.jit
def kernel(
    M,  # noqa: N803
    N,  # noqa: N803
    K,  # noqa: N803
    BLOCK_SIZE_M: tl.constexpr,  # noqa: N803
    BLOCK_SIZE_N: tl.constexpr,  # noqa: N803
    BLOCK_SIZE_K: tl.constexpr,  # noqa: N803
    GROUP_SIZE_M: tl.constexpr,  # noqa: N803
):
    """What Triton would compile; it is never launched."""


def pruned(by: dict) -> list[triton.Config]:
    """What Triton's autotuner leaves to time."""
    decorated = triton.autotune(
        configs(), key=[*SIZES], prune_configs_by=by, do_bench=lambda *_, **__: [1.0]
    )(kernel)
    decorated.nargs = dict(SIZES)
    return decorated.prune_configs({})


def main() -> None:
    every = configs()
    eight = pruned(prune_configs_by(top_k=8))
    times = {id(c): perf_model(**SIZES, **c.all_kwargs()) for c in every}
    able = [c for c in every if times[id(c)] < float("inf")]
    assert 8 < len(able) < len(every)
    best = sorted(times.values())[:8]
    found = [perf_model(**SIZES, **c.all_kwargs()) for c in eight]
    assert found == best, (found, best)
    both = pruned({"early_config_prune": early_config_prune, "perf_model": perf_model, "top_k": 8})
    assert [perf_model(**SIZES, **c.all_kwargs()) for c in both] == best
    print(f"triton {triton.__version__}: {len(every)} configurations, {len(able)} run, 8 left")

    rule = restriction(VALUES, {"m": 4096, "n": 4096, "k": 4096}, keep=0.1)
    space = kernel_tuner.searchspace.Searchspace(VALUES, [rule], 1024)
    assert 0 < space.size <= round(0.1 * len(able)) + 1
    left = [dict(zip(VALUES, row, strict=True)) for row in space.list]
    slowest = max(perf_model(**SIZES, **row) for row in left)
    assert slowest <= sorted(times.values())[space.size - 1]
    print(f"kernel_tuner: {space.size} left of {len(every)}")


if __name__ == "__main__":
    main()
