"""What real logs and tables have that small samples lack: several processes, other words, kernels
that the model does not cover, times that can't be."""

import gzip
import json
import subprocess
import sys

import pandas as pd
import pytest

import wsjax
from wsjax.cli import main
from wsjax.errors import InputError
from wsjax.importers import REASONS, kernel_names, outcome, read, values
from wsjax.importers.formats import plain
from wsjax.tables import read_table

CHOICE = (
    "ACC_TYPE='tl.float32', ALLOW_TF32=False, BLOCK_K=128, BLOCK_M=64, BLOCK_N=64, EVEN_K=True, "
    "GROUP_M=8, USE_FAST_ACCUM=True, num_stages=4, num_warps=4"
)
BF16 = "dtypes: torch.bfloat16, torch.bfloat16"
FP8 = "dtypes: torch.float8_e4m3fn, torch.float8_e4m3fn, torch.float32, torch.float32"


@pytest.fixture
def write(tmp_path):
    def write_(text, name="file"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_


def block(title: str, *fields: str, kernel="triton_mm_1", time="0.0317") -> str:
    return "\n".join([f"AUTOTUNE {title}", *fields, f"  {kernel} {time} ms 100.0% {CHOICE}", ""])


def only(found) -> dict:
    assert found.report.read == 1
    return found.table.iloc[0].to_dict()


@pytest.mark.parametrize(
    ("title", "fields", "problem", "dtype", "excluded"),
    [
        ("scaled_mm(4096x3072, 3072x64, 1, , 64)", [], (4096, 64, 3072), "fp8_e4m3", ""),
        ("scaled_mm(4096x3072, 3072x64, , )", [], (4096, 64, 3072), "fp8_e4m3", ""),
        ("_scaled_mm_v2(16x64, 64x32, 16x1, 1x32)", [FP8], (16, 32, 64), "fp8_e4m3", ""),
        ("scaled_mm(16x64, 64x32, 1, 1)", [FP8.replace("e4m3fn", "e5m2")], (16, 32, 64), "fp8_e5m2",
         ""),
        ("scaled_mm(16x256, 256x32, 16x2, 2x1)", [FP8], (16, 32, 256), "fp8_e4m3", "block_scaled"),
        ("mm(16x64, 64x32)", ["dtypes: torch.bfloat16, torch.int8"], (16, 32, 64), None,
         "unsupported"),
        ("mixed_mm(16x64, 64x32)", ["dtypes: torch.float16, torch.int8"], (16, 32, 64), None,
         "unsupported"),
        ("addmm(32, 16x64, 64x32)", ["dtypes: torch.float32, torch.float16, torch.float16"],
         (16, 32, 64), "fp16", ""),
        ("baddbmm(2x16x32, 2x16x64, 2x64x32)", [BF16 + ", torch.bfloat16"], (16, 32, 64), "bf16",
         ""),
        ("mm(s0x64, 64x32)", [BF16], (0, 0, 0), None, "no_problem"),
        ("mm(16x64, 63x32)", [BF16], (0, 0, 0), None, "no_problem"),
        ("_grouped_mm(16x64, 4x64x32, 4)", [BF16], (0, 0, 0), None, "grouped"),
        ("mm_plus_mm(8x8, 8x8, 8x8, 8x8)", [BF16], (0, 0, 0), None, "not_gemm"),
    ],
)  # fmt: skip
def test_shapes_and_types_of_inductor(write, title, fields, problem, dtype, excluded):
    row = only(read(write(block(title, *fields))))
    assert (row["excluded"], row["time_us_measured"]) == (excluded, pytest.approx(31.7))
    if any(problem):
        assert (row["m"], row["n"], row["k"]) == problem
        assert (row["block_m"], row["block_n"], row["block_k"], row["stages"]) == (64, 64, 128, 4)
    if dtype:
        assert row["dtype_in"] == dtype
    if dtype == "fp8_e4m3":
        assert row["dtype_out"] == "bf16"


def test_types_that_inductor_does_not_tell_are_noted(write):
    found = read(write(block("scaled_mm(16x64, 64x32, 1, , 64)")))
    assert any("scaled_mm without its types" in note for note in found.report.notes)
    assert only(found)["accum"] == "f32_fast"


def test_a_shape_that_changes_takes_no_rows_of_the_one_before(write):
    text = block("mm(16x64, 64x32)", BF16) + block("mm(s77x64, 64x32)", BF16, time="0.5")
    table = read(write(text)).table
    assert table["excluded"].tolist() == ["", "no_problem"]


@pytest.mark.parametrize(
    "first", ["[START] Security scan\n[DONE] Security scan\n", "{not json}\n", "[1/3] Building\n"]
)
def test_a_log_that_begins_with_brackets(write, first):
    found = read(write(first + block("mm(3840x1152, 1152x49136)", BF16, time="0.6288")))
    row = only(found)
    assert found.report.format == "inductor"
    assert (row["m"], row["n"], row["k"], row["dtype_in"]) == (3840, 49136, 1152, "bf16")
    assert row["time_us_measured"] == pytest.approx(628.8)


PREFIXES = {
    "torchrun": ("[default0]:", "[default1]:"),
    "torchrun, a space": ("[default0]: ", "[default1]: "),
    "mpirun": ("[1,0]<stdout>:", "[1,1]<stdout>:"),
    "srun": ("0: ", "1: "),
    "ray": ("\x1b[36m(Worker pid=7)\x1b[0m ", "\x1b[36m(Worker pid=8)\x1b[0m "),
    "vllm": ("(EngineCore_DP0 pid=7) ", "(EngineCore_DP1 pid=8) "),
    "rank": ("[rank0]:", "[rank1]:"),
}


@pytest.mark.parametrize("prefixes", PREFIXES.values(), ids=PREFIXES)
def test_lines_of_two_processes_that_mix(write, prefixes):
    blocks = [
        block("mm(16x64, 64x32)", BF16, kernel="triton_mm_0", time="0.01"),
        block("mm(128x256, 256x512)", BF16.replace("bf", "f"), kernel="triton_mm_1", time="0.02"),
    ]
    blocks[1] = blocks[1].replace("bfloat16", "float16")
    lines = [
        [f"{p}{line}" for line in b.splitlines()] for p, b in zip(prefixes, blocks, strict=True)
    ]
    mixed = "\n".join(line for pair in zip(*lines, strict=True) for line in pair)
    table = read(write(mixed)).table.set_index("kernel")
    assert table.loc["triton_mm_0", ["m", "n", "k", "dtype_in"]].tolist() == [16, 32, 64, "bf16"]
    assert table.loc["triton_mm_1", ["m", "n", "k", "dtype_in"]].tolist() == [128, 512, 256, "fp16"]


@pytest.mark.parametrize(
    "prefix",
    [
        "I1129 10:0{}:00.000 7 torch/x.py:1] [0/0] ",
        *("[2026-11-30T10:0{}:00] ", "10:0{}:00 ", "# ", "    "),
    ],
)
def test_prefixes_that_tell_no_process(write, prefix):
    lines = block("mm(16x64, 64x32)", BF16).splitlines()
    text = "\n".join(prefix.format(i) + line for i, line in enumerate(lines))
    row = only(read(write(text)))
    assert (row["m"], row["dtype_in"], row["excluded"]) == (16, "bf16", "")


WINNERS = (
    "Triton autotuning for function matmul_kernel finished after 2.75s; best config selected: "
    "BLOCK_SIZE_M: 128, BLOCK_SIZE_N: 256, num_warps: 8, num_ctas: 1, num_stages: 3;\n"
)
PRINTED = """
=============================
  Problem ID: 1

        Provider: CUTLASS
   OperationKind: gemm
       Operation: cutlass_simt_sgemm_128x128_8x2_nn_align1

         Runtime: 1.5  ms
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WINNERS * 3, "winners only of Triton's autotuning"),
        (f"[default0]:{WINNERS}", "autotune.json"),
        (PRINTED, "--output=FILE"),
    ],
)
def test_files_without_times_say_which_has_them(write, text, message):
    with pytest.raises(InputError, match=message):
        read(write(text))


HEADER = (
    "Problem,Provider,OperationKind,Operation,Disposition,Status,gemm_kind,m,n,k,A,B,C,D,beta,"
    "op_class,accum,cta_m,cta_n,cta_k,stages,Runtime"
)
NARROW = "Problem,Provider,OperationKind,Operation,Disposition,Status,gemm_kind,m,n,k,Runtime"
SM90 = (
    "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_1x1x1_0_tnn_align8"
)
PLAIN_90 = f"{SM90}_warpspecialized_cooperative_epi_tma"
FP8_90 = "cutlass3x_sm90_tensorop_gemm_e4m3_e4m3_f32_bf16_bf16_128x128x64_1x1x1_0_tnn_align16"
F32 = ("f32:column", "f32:row", "f32:column", "f32:column")


def profiled(name, *types, kind="gemm", beta="0", accum="f32", runtime="1.5") -> str:
    a, b, c, d = types or ("bf16:row", "bf16:column", "bf16:column", "bf16:column")
    return (
        f"1,CUTLASS,{kind},{name},passed,success,universal,512,1024,256,{a},{b},{c},{d},{beta},"
        f"tensorop,{accum},128,128,64,4,{runtime}"
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (profiled(f"{SM90}_stream_k_warpspecialized_cooperative_epi_tma"), ""),
        (profiled(f"{SM90}_stream_k_warpspecialized_pingpong_epi_tma"), "stream_k"),
        (profiled(f"{SM90}_stream_k_warpspecialized_cooperative_epi_tma".replace("sm90", "sm100")),
         "stream_k"),
        (profiled(f"{FP8_90.replace('e4m3_e4m3', '1x128f32xe4m3_128x128f32xe4m3')}_x"),
         "block_scaled"),
        (profiled(PLAIN_90, kind="blockwise_gemm"), "block_scaled"),
        (profiled("cutlass3x_sm100_bstensorop_gemm_ue8m0xe4m3_ue8m0xe4m3_f32_void_bf16_128x128x128"
                  "_1x1x1_0_tnt_align16_q_1sm", kind="block_scaled_gemm"), "block_scaled"),
        (profiled("cutlass3x_sm100_bstensorop_gemm_ue4m3xe2m1_ue4m3xe2m1_f32_void_f16_128x128x256"
                  "_1x1x1_0_tnt_align32_o_vs16_1sm"), "block_scaled"),
        (profiled("cutlass_tensorop_s8_i16832gemm_s8_128x128_64x4_nk32tk32_align16",
                  "s8:nk32", "s8:tk32", "s8:nk32", "s8:nk32", accum="s32"), "interleaved"),
        (profiled("cutlass_tensorop_s8_i16832gemm_s8_128x128_64x4_n32t32_align16"), "interleaved"),
        (profiled("cutlass_tensorop_h16816gemm_128x128_64x4_nt_align8", accum="f16"), "f16_accum"),
        (profiled("cutlass_tensorop_h16816gemm_128x128_64x4_nt_align8"), "f16_accum"),
        (profiled("cutlass_tensorop_s1688f16gemm_128x128_64x4_nt_align4", *F32), "emulated"),
        (profiled("cutlass_tensorop_s1688bf16gemm_128x128_64x4_nt_align4", *F32), "emulated"),
        (profiled("cutlass_tensorop_s1688gemm_128x128_64x4_nt_align4", *F32), "emulated"),
        (profiled("cutlass_tensorop_s1688tf32gemm_128x128_64x4_nt_align4", *F32), ""),
        (profiled(PLAIN_90, beta="1"), "beta"),
        (profiled(PLAIN_90, beta="0.0"), ""),
        (profiled("cutlass_tensorop_f16_s16816gemm_grouped_f16_128x128_32x3_nn_align8"), "grouped"),
        (profiled("cutlass_tensorop_s16832spgemm_f16_128x128_64x4_nn_align8"), "sparse"),
        (profiled(PLAIN_90), ""),
    ],
)  # fmt: skip
def test_what_the_model_does_not_cover_has_its_reason(write, row, reason):
    found = read(write(f"{HEADER}\n{row}\n{profiled(PLAIN_90, runtime='9')}\n"))
    first = found.table.iloc[0].to_dict()
    assert first["excluded"] == reason
    second = found.table["excluded"].tolist()[1]
    assert second == ("duplicate" if PLAIN_90 in row and not reason else "")
    if reason:
        assert first["status"] == reason
        assert found.report.excluded == {reason: 1}
        assert reason in REASONS
    if "tf32" in row:
        assert (first["dtype_in"], first["dtype_out"]) == ("tf32", "fp32")


def test_kernels_that_differ_in_accumulation_are_two_configurations(write):
    fast = FP8_90 + "_warpspecialized_pingpong_fp8_fastaccum_epi_tma"
    rows = [profiled(name, "e4m3:row", "e4m3:column", "bf16:column", "bf16:column")
            for name in (fast, fast.replace("_fp8_fastaccum", ""))]  # fmt: skip
    table = read(write("\n".join([HEADER, *rows]))).table
    assert table["excluded"].tolist() == ["", ""]
    assert table["accum"].tolist() == ["f32_fast", "f32_promoted"]


def test_stream_k_and_its_plain_twin_are_two_configurations(write):
    """CUTLASS's profiler leaves the division to the scheduler, unless it is told to split k."""
    stream_k = PLAIN_90.replace("_warp", "_stream_k_warp")
    header = HEADER.replace(",Runtime", ",split_k_slices,Runtime")
    rows = [f"{profiled(name).rpartition(',')[0]},{slices},{ms}"
            for name, slices, ms in ((stream_k, 1, "0.0305"), (stream_k, 4, "0.0290"),
                                     (PLAIN_90, 1, "0.0555"))]  # fmt: skip
    table = read(write("\n".join([header, *rows]))).table
    assert table["excluded"].tolist() == [""] * 3
    assert table["scheduler"].tolist() == ["heuristic", "heuristic", "persistent"]
    assert table["split_k"].tolist() == [1, 4, 1]
    assert table["time_us_measured"].tolist() == [30.5, 29.0, 55.5]
    assert wsjax.predict(table[table.columns[:25]], "h200")["legal"].all()


@pytest.mark.parametrize(
    ("name", "dtype_in", "dtype_out", "stages"),
    [
        (f"{FP8_90}_warpspecialized_cooperative_epi_tma", "fp8_e4m3", "bf16", 13),
        (
            f"{FP8_90.replace('e4m3', 'e5m2')}_warpspecialized_pingpong_epi_tma",
            "fp8_e5m2",
            "bf16",
            None,
        ),
        (PLAIN_90, "bf16", "bf16", 6),
        (PLAIN_90.replace("bf16", "f16"), "fp16", "fp16", 6),
        ("cutlass_tensorop_f16_s16816gemm_f16_256x128_32x3_nt_align8", "fp16", "fp16", 3),
        ("cutlass_tensorop_s8_i16832gemm_s8_256x128_64x3_tn_align16", "int8", "int8", 3),
        ("cutlass_tensorop_s1688tf32gemm_256x128_16x3_nn_align4", "tf32", "fp32", 3),
        ("cutlass_simt_sgemm_128x128_8x2_nn_align1", "fp32", "fp32", 2),
    ],
)
@pytest.mark.parametrize("form", ["profiler", "plain"])
def test_a_name_alone_tells_the_types(write, name, dtype_in, dtype_out, stages, form):
    row = f"1,CUTLASS,gemm,{name},passed,success,universal,16384,16384,16384,7.70"
    if form == "plain":
        text = f"kernel,m,n,k,time_ms\n{name},16384,16384,16384,7.70\n"
    else:
        text = f"{NARROW}\n{row}\n"
    first = only(read(write(text)))
    assert (first["dtype_in"], first["dtype_out"], first["excluded"]) == (dtype_in, dtype_out, "")
    assert first["time_us_measured"] == pytest.approx(7700)
    assert stages in (None, first["stages"])


def test_types_chosen_at_run_time_are_those_that_ran(write):
    header = f"{HEADER},runtime_input_datatype_a,runtime_input_datatype_b"
    name = "cutlass3x_sm100_tensorop_gemm_f8_f8_f32_void_bf16_128x128x128_1x1x1_0_tnt_align16_1sm"
    row = profiled(name, "f8:row", "f8:column", "void:row", "bf16:row")
    first = only(read(write(f"{header}\n{row},e5m2,e5m2\n")))
    assert (first["dtype_in"], first["dtype_out"], first["layout"]) == ("fp8_e5m2", "bf16", "nt")


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [("scheduler", "streamk", ""), ("scheduler", "heuristic", ""),
     ("scheduler", "persistent", ""), ("scheduler,split_k", "splitk,4", ""),
     ("scheduler,split_k", "persistent,4", "split_k"), ("split_k", "4", "split_k"),
     ("beta", "0.5", "beta"), ("beta", "", ""),
     ("accum", "f16", "f16_accum"), ("accum", "f32_promoted", ""),
     ("kernel", "streamk_gemm", "stream_k")],
)  # fmt: skip
def test_columns_of_plain_tables_tell_it_too(write, column, value, reason):
    text = f"m,n,k,block_m,block_n,block_k,time_us,{column}\n64,64,64,64,64,64,5,{value}\n"
    assert only(read(write(text)))["excluded"] == reason


WORDS = {
    "fp16": "float16 torch.float16 half f16_r CUDA_R_16F HIP_R_16F cutlass::half_t tl.float16 FP16",
    "bf16": "torch.bfloat16 bf16_r CUDA_R_16BF __nv_bfloat16 cutlass::bfloat16_t BFloat16 "
    "jnp.bfloat16",
    "fp32": "float float32 f32_r torch.float32 FP32 np.float32",
    "tf32": "TF32 xf32_r tf32",
    "fp8_e4m3": "e4m3 f8_r fp8 torch.float8_e4m3fn float8_e4m3fnuz fe4m3 CUDA_R_8F_E4M3 fp8e4nv "
    "cutlass::float_e4m3_t",
    "fp8_e5m2": "e5m2 bf8_r torch.float8_e5m2 float8_e5m2fnuz fe5m2 HIP_R_8F_E5M2 fp8e5",
    "int8": "s8 i8_r torch.int8 int8_t",
}
PAIRS = [(ours, theirs) for ours, all_ in WORDS.items() for theirs in all_.split()]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_the_words_of_the_field(ours, theirs):
    assert values.dtype(theirs) == ours


@pytest.mark.parametrize(
    "word", ["u8", "f64", "s32", "int4", "e2m1", "nvfp4", "ue8m0xe4m3", "x", ""]
)
def test_words_without_one_of_ours_stay(word):
    assert values.dtype(word) == word


@pytest.mark.parametrize(("ours", "theirs"), [("fp16", "float16"), ("bf16", "torch.bfloat16"),
                                              ("fp16", "half"), ("fp8_e4m3", "e4m3")])  # fmt: skip
def test_a_map_knows_the_words_too(write, ours, theirs):
    text = f"m,n,k,bm,bn,bk,ms,dt\n64,64,64,64,64,64,0.5,{theirs}\n"
    for mapping in ({"dtype_in": "dt"}, {"dtype_in": theirs}):
        row = only(read(write(text), mapping=mapping))
        assert (row["dtype_in"], row["excluded"], row["time_us_measured"]) == (ours, "", 500)


@pytest.mark.parametrize(
    ("names", "us"),
    [("ms", 5000), ("us", 5), ("ns", 0.005), ("runtime_ms", 5000), ("Latency[us]", 5),
     ("gpuTimeUs", 5), ("avg_ms", 5000), ("kernel_us", 5), ("Runtime (ms)", 5000),
     ("time/us", 5), ("p50_ms", 5000), ("elapsed (µs)", 5), ("exec_time_ns", 0.005)],
)  # fmt: skip
def test_names_of_times(write, names, us):
    row = only(read(write(f"m,n,k,bm,bn,bk,{names}\n64,64,64,64,64,64,5\n")))
    assert row["time_us_measured"] == pytest.approx(us)


@pytest.mark.parametrize("name", ["use_gpu_timer", "CPU-us", "flops_per_us", "GB/ms", "timestamp",
                                  "timeout_ms", "nsamples", "mean_error", ":"])  # fmt: skip
def test_names_that_are_no_times(name):
    assert not plain.names([name])
    assert plain.names([name, "us"]) == {"time_us_measured": "us"}


@pytest.mark.parametrize("name", ["runtime", "latency", "duration"])
def test_a_time_without_a_unit_is_asked_for(write, name):
    with pytest.raises(InputError, match=f"'{name}' has times without a unit"):
        read(write(f"m,n,k,bm,bn,bk,{name}\n64,64,64,64,64,64,5\n"))


def rated(*rows: str, rate="tflops", time="time_ms") -> str:
    return "\n".join([f"m,n,k,block_m,block_n,block_k,{rate},{time}", *rows, ""])


SQUARE = "4096,4096,4096,128,256,64"


def test_a_time_that_contradicts_the_rate_beside_it(write):
    wrong = rated(f"{SQUARE},554.0,248.08", "3712,3712,3712,128,256,64,467.4,218.86")
    with pytest.raises(InputError) as error:
        read(write(wrong))
    assert "column 'tflops' says 554 where 4096x4096x4096 in 248.08 ms makes 0.554" in str(
        error.value
    )
    assert "1,000 times smaller fits" in str(error.value)
    mended = read(write(wrong), mapping={"time_us": "time_ms"})
    assert mended.table["time_us_measured"].tolist() == [248.08, 218.86]
    assert mended.report.kept == 2


@pytest.mark.parametrize(
    ("rate", "value", "fine"),
    [("GFLOPS", "554000", True), ("TFLOP/s", "554", True), ("TFLOPS", "200", True),
     ("tflops", "180", False), ("GFLOP/s", "554", False), ("gflops", "137.44", True),
     ("peak_tflops", "5", True), ("flops", "1", True), ("tflops", "", True), ("tflops", "0", True)],
)  # fmt: skip
def test_rates_of_any_name(write, rate, value, fine):
    text = rated(f"{SQUARE},{value},248.08", rate=rate, time="time_us")
    if fine:
        assert read(write(text)).report.kept == 1
        return
    with pytest.raises(InputError, match=r"4096x4096x4096 in 248\.08 µs"):
        read(write(text))


def test_one_row_that_contradicts_its_rate_is_left_out(write):
    rows = [f"{m},4096,4096,128,256,64,554,{248.08 * m / 4096}" for m in (1024, 2048, 4096)]
    found = read(write(rated(*rows, "8192,4096,4096,128,256,64,554,5", time="time_us")))
    assert found.table["excluded"].tolist() == ["", "", "", "contradicts"]


BENCH = """\
hipBLASLt version: 100200
[0]:transA,transB,grouped_gemm,batch_count,m,n,k,alpha,beta,a_type,b_type,c_type,d_type,\
compute_type,use_gpu_timer,hipblaslt-Gflops,hipblaslt-GB/s,us
    T,N,{grouped},1,512,1024,256,1,{beta},{a},{b},bf16_r,bf16_r,{compute},1,26214,100,{us}
    --Solution index: 302286
    --kernel name:    Cijk_Alik_Bljk_BBS_BH_MT256x128x64_MI16x16x1_SN_{name}_gfx950
"""
USUAL = {"grouped": 0, "beta": 0, "a": "f8_r", "b": "f8_r", "compute": "f32_r", "us": 10.24} | {
    "name": "GSU1_SK0"
}


@pytest.mark.parametrize(
    ("changed", "dtype", "excluded"),
    [({}, "fp8_e4m3", ""), ({"a": "bf8_r", "b": "bf8_r"}, "fp8_e5m2", ""),
     ({"b": "bf8_r"}, None, "unsupported"), ({"beta": 1}, "fp8_e4m3", "beta"),
     ({"a": "f32_r", "b": "f32_r", "compute": "xf32_r"}, "tf32", ""),
     ({"a": "f32_r", "b": "f32_r", "compute": "f32_f16_r"}, "fp32", "emulated"),
     ({"a": "f16_r", "b": "f16_r", "compute": "f16_r"}, "fp16", "f16_accum"),
     ({"grouped": 1}, "fp8_e4m3", "grouped"), ({"name": "GSU1_SK3"}, "fp8_e4m3", "stream_k")],
)  # fmt: skip
def test_hipblaslt_bench(write, changed, dtype, excluded):
    found = read(write(BENCH.format(**(USUAL | changed))))
    row = only(found)
    assert found.report.format == "hipblaslt"
    assert (row["m"], row["n"], row["k"], row["layout"]) == (512, 1024, 256, "nt")
    assert (row["time_us_measured"], row["excluded"]) == (10.24, excluded)
    assert (row["block_m"], row["block_n"], row["block_k"]) == (256, 128, 64)
    assert dtype in (None, row["dtype_in"])


def test_hipblaslt_names_in_a_plain_table(write):
    text = "m,n,k,bm,bn,bk,a_type,b_type,d_type,use_gpu_timer,us\n"
    first = only(read(write(f"{text}64,64,64,64,64,64,f8_r,f8_r,f16_r,1,5\n")))
    assert (first["dtype_in"], first["dtype_out"], first["time_us_measured"]) == (
        "fp8_e4m3",
        "fp16",
        5,
    )
    mixed = only(read(write(f"{text}64,64,64,64,64,64,bf16_r,i8_r,f16_r,1,5\n")))
    assert mixed["excluded"] == "unsupported"


def test_failures_of_kernel_tuner_are_not_wrong_results(write):
    def result(invalidity, correctness):
        return {
            "configuration": {"MWG": 64, "NWG": 64, "KWG": 32, "x": invalidity},
            "times": {"runtimes": []}, "invalidity": invalidity, "correctness": correctness,
            "measurements": [{"name": "time", "value": 1.0, "unit": "ms"}],
        }  # fmt: skip

    words_ = ["runtime", "compile", "timeout", "constraints", "correctness", "correct"]
    text = json.dumps({"schema_version": "1.0.0", "results": [result(w, 0) for w in words_]})
    table = read(write(text), mapping=dict.fromkeys("mnk", "64")).table
    assert table["excluded"].tolist() == ["failed"] * 4 + ["incorrect"] * 2


NAMES = f"""\
# log
M,N,K,BLOCK_SIZE_M,BLOCK_SIZE_N,BLOCK_SIZE_K,num_stages,dtype,ms
512,1024,256,128,128,64,4,torch.float16,0.0125
640,1024,256,128,128,64,4,torch.float16,0.0130
{""}"""


def test_other_verbs_read_what_import_reads(write, capsys, tmp_path):
    path, out = write(NAMES, "t.csv"), tmp_path / "p.parquet"
    assert main(["predict", "--table", str(path), "--out", str(out)]) == 0
    predicted = read_table(out)
    assert predicted.column_names[:9] == [
        *("m", "n", "k", "block_m", "block_n", "block_k", "stages", "dtype_in", "ms")
    ]
    assert predicted["dtype_in"].to_pylist() == ["fp16", "fp16"]
    assert predicted["legal"].to_pylist() == [True, True]
    assert len(wsjax.validate(path, "h200").rows.rows) == 2
    chosen = wsjax.choose(path, 1)
    assert chosen.assignment["m"].tolist() == [512, 640]
    assert main(["choose", str(path), "-k", "1"]) == 0
    assert "measured, the set takes" in capsys.readouterr().out


def test_measured_times_under_the_name_of_a_prediction(write, tmp_path):
    text = "m,n,k,block_m,block_n,block_k,time_us\n512,1024,256,128,128,64,12.5\n"
    path, out = write(text, "t.csv"), tmp_path / "p.csv"
    assert main(["predict", "--table", str(path), "--out", str(out)]) == 0
    found = pd.read_csv(out)
    assert found["time_us_measured"].tolist() == [12.5]
    assert main(["predict", "--table", str(out), "--out", str(tmp_path / "q.csv")]) == 2
    predictions = write(found.drop(columns="time_us_measured").to_csv(index=False), "p2.csv")
    with pytest.raises(InputError, match="no column of measured times"):
        read(predictions)


def test_an_import_that_keeps_no_row(write, capsys, tmp_path):
    head = "m,n,k,block_m,block_n,block_k,time_us,dtype_in,split_k\n64,64,64,64,64,64"
    out = tmp_path / "o.parquet"
    for row, reason in (("5,fp4,1", "unsupported"), ("5,bf16,2", "split_k")):
        assert main(["import", str(write(f"{head},{row}\n")), "--out", str(out)]) == 2
        shown = capsys.readouterr()
        lines = [" ".join(line.split()) for line in shown.out.splitlines()]
        assert "kept 0 for a fit" in lines
        assert any(line.startswith(f"{reason} 1 ") for line in lines)
        assert "no row counts for a fit" in shown.err
        assert main(["validate", str(write(f"{head},{row}\n"))]) == 2
        capsys.readouterr()


LONG_LINE = """
import sys
from wsjax.errors import InputError
from wsjax.importers import read, read_own
for function in (read, lambda path: read_own(path, {})):
    try:
        function(sys.argv[1])
        print("read")
    except InputError as error:
        print(str(error).replace(chr(10), " "))
status = open("/proc/self/status").read().split()
print(status[status.index("VmHWM:") + 1])
"""


def test_a_cell_of_400_megabytes_costs_no_memory(write, tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.GzipFile(path, "wb") as file:
        file.write(b"m,n,k,block_m,block_n,block_k,time_us,note\n64,64,64,64,64,64,5,")
        for _ in range(100):
            file.write(b"x" * 4_000_000)
    run = [sys.executable, "-c", LONG_LINE, str(path)]
    *told, peak = subprocess.run(
        run, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(told) == 2
    assert all("csv.gz:2: a line of more than 1,048,576 characters" in text for text in told)
    assert int(peak) < 500 * 1024


def test_json_of_any_size_is_bounded(write, monkeypatch):
    from wsjax.importers import source

    monkeypatch.setattr(source, "TEXT_MAX", 1000)
    monkeypatch.setattr(source, "HEAD_BYTES", 100)
    cache = {"cache": {str(i): {"time": 1.0} for i in range(100)}, "tune_params_keys": []}
    text = json.dumps({"tune_params_keys": [], **cache})
    with pytest.raises(InputError, match="is JSON of more than 1,000 characters"):
        read(write(text), format="kernel_tuner")


def test_names_that_say_a_reason_and_names_that_say_none():
    names = {
        "stream_k": "x_stream_k_y", "block_scaled": "a_block_scaled_b", "sparse": "spgemm",
        "interleaved": "x_n32t32_y", "grouped": "gemm_grouped", "emulated": "s1688bf16gemm_x",
    }  # fmt: skip
    assert {outcome.of_name(name): reason for reason, name in names.items()} == {
        reason: reason for reason in names
    }
    for name in ("matmul_kernel", PLAIN_90, "nvjet_tst_128x256_64x4", "triton_mm_3", "cublas"):
        assert outcome.of_name(name) == ""
    assert kernel_names.operands("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT") == {}


def test_persistent_is_said_of_the_rows_that_are(write):
    text = block("mm(16x64, 64x32)", BF16)
    text += f"  triton_mm_persistent_tma_2 0.02 ms 90.0% {CHOICE}, NUM_SMS=132\n"
    assert read(write(text)).table["schedule"].tolist() == ["serial", "persistent"]


def test_a_column_that_may_be_the_stages_is_asked_about(write):
    text = "m,n,k,block_m,block_n,block_k,time_us,stage\n64,64,64,64,64,64,5,2\n"
    notes = read(write(text)).report.notes
    assert "column 'stage' is not read; is it stages? --map stages=stage" in notes
