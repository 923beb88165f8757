"""Files in a strace log that are not data of the program. Lines are from real logs, shortened."""

from __future__ import annotations

import pytest

from tests.readers.strace_logs import read, written
from vani.calls import FileClass

DATA = FileClass.DATASET


def classes(folder, *lines):
    """Class of each file in a log."""
    files = read(written(folder, *(f"7 {line}" for line in lines))).reader.files()
    return {
        path: FileClass(number)
        for path, number in zip(files["path"].to_pylist(), files["class"].to_pylist(), strict=True)
    }


def opened(path, flags="O_RDONLY"):
    return f'openat(AT_FDCWD</run>, "{path}", {flags}) = 3<{path}> <0.000010>'


def segment(path, *, size=8192, pause=0):
    """How users of shm_open create a segment: created, sized, mapped and unlinked."""
    return [
        opened(path, "O_RDWR|O_CREAT|O_EXCL"),
        f'write(3<{path}>, ""..., {size}) = {size} <0.000010>',
        f"mmap(NULL, {size}, PROT_READ|PROT_WRITE, MAP_SHARED, 3<{path}>, 0) = 0x7fbd5c81f000 <0.000015>",
        *["getpid() = 7 <0.000001>"] * pause,
        f'unlink("{path}") = 0 <0.000012>',
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/dev/shm/mpich_shar_tmpHh7QZP",
        "/dev/shm/ucx_shm_posix_1bdddf4d",
        "/dev/shm/vader_segment.nid001.1000.5c300001.3",
        "/dev/shm/sm_segment.nid001.1000.5c300001.3",
        "/dev/shm/osc_rdma.nid001.5c300001.4",
        "/dev/shm/psm2_shm.1000000000002",
        "/dev/shm/open_mpi.0000",
        "/scratch/out.dat.locktest.3",
        "/scratch/.out.dat.shfp.719885386",
        "/scratch/.out.dat.shfp.778739020.25989",
        "/dev/shm/Intel_MPI_gTbT3s",
        "/dev/shm/sem.mp-w7u3",
        "/tmp/ompi.nid001.1000/pid.7012/0/3/vader_fifo",
        "/work/tmp/ompi.nid001.site.org.1000/pid.7012/1/out.nc_cid--1-0.sm",
        "/work/tmp/vader_segment.nid001.1000.5c300001.3",
        "/dev/shm/rocm_smi_card0",
        "/dev/shm/torch_4711_183726451_0",
        "/dev/shm/psm_1f3c5a7e",
        "/work/tmp/torch-shm-dir-bTq3Zk/manager.sock",
        "/work/tmp/pymp-k3v9x_2a/pym-4711-df1irjps",
        "/scratch/tmp/prte.nid001.7012.1000/dvm.7012/contact",
        "/tmp/pmix_dstor_ds21_7012/smlockseg-prte-nid001",
        "/home/alice/.openmpi/mca-params.conf",
        "/etc/hosts",
        "/usr/share/misc/pci.ids.gz",
        "/usr/lib/locale/C.utf8/LC_CTYPE",
        "/opt/env/share/terminfo/x/xterm",
    ],
)
def test_files_of_mpi_and_of_the_system_are_not_data(tmp_path, path):
    line = f'write(3<{path}>, ""..., 100) = 100 <0.000010>'
    assert classes(tmp_path, opened(path, "O_RDWR|O_CREAT"), line)[path] == FileClass.SYSTEM


@pytest.mark.parametrize(
    "path",
    [
        "/dev/shm/input.h5",
        "/dev/shm/psm_results.npy",
        "/scratch/torch_weights_1.pt",
        "/dev/shm/shm_input.h5",
        "/run/out",
        "/scratch/etc/hosts",
        "/lustre/env/lib/python3.11/site-packages/numpy/__init__.py",
        "/usr/lib/python3/dist-packages/numpy/__pycache__/version.cpython-311.pyc",
        "/lustre/ompi/out.dat",
        "/lustre/env/etc/model.yaml",
    ],
)
def test_a_programs_own_files_are_data(tmp_path, path):
    line = f'read(3<{path}>, ""..., 100) = 100 <0.000010>'
    assert classes(tmp_path, opened(path), line)[path] == DATA


def test_mapped_file_in_dev_shm_is_shared_memory(tmp_path):
    of_python = "/dev/shm/pym-4711-df1irjps"
    assert classes(tmp_path, *segment(of_python))[of_python] == FileClass.SYSTEM


def test_data_in_dev_shm_is_still_data(tmp_path):
    late, read_back, kept = (f"/dev/shm/{name}" for name in ("late", "read", "kept"))
    lines = [
        *segment(late, pause=1001),
        *segment(read_back)[:-1],
        f'pread64(3<{read_back}>, ""..., 10, 0) = 10 <0.000010>',
        f'unlink("{read_back}") = 0 <0.000012>',
        *segment(kept)[:-1],
    ]
    log = tmp_path / "log"
    log.write_text("".join(f"7 {1700000000 + n // 1000}.{n % 1000:03}000 {line}\n" for n, line in enumerate(lines)))
    files = read(log).reader.files()
    by_path = dict(zip(files["path"].to_pylist(), files["class"].to_pylist(), strict=True))
    assert [by_path[path] for path in (late, read_back, kept)] == [DATA] * 3


def test_settings_next_to_a_loaded_mpi_are_not_data(tmp_path):
    found = classes(
        tmp_path,
        opened("/opt/openmpi/4.1/lib/libmpi.so.40.30.1"),
        opened("/opt/openmpi/4.1/etc/openmpi-totalview.tcl"),
        opened("/opt/openmpi/4.1/share/openmpi/help-mpi-btl.txt"),
        opened("/opt/openmpi/4.1/lib/x86_64-linux-gnu/pmix2/share/pmix-mca-params-override.conf"),
        opened("/opt/openmpi/4.1/share/doc/data.txt"),
        opened("/opt/other/etc/data.txt"),
        opened("/dev/shm/shm_segment", "O_RDWR"),
    )
    assert [path for path, kind in found.items() if kind == DATA] == [
        "/opt/openmpi/4.1/share/doc/data.txt",
        "/opt/other/etc/data.txt",
    ]


def test_redirected_output_is_a_standard_stream(tmp_path):
    found = classes(
        tmp_path,
        'newfstatat(1</job/out.txt>, "", {st_mode=S_IFREG|0644, st_size=0, ...}, AT_EMPTY_PATH) = 0 <0.000008>',
        'write(1</job/out.txt>, ""..., 10) = 10 <0.000010>',
        opened("/job/redirected", "O_WRONLY|O_CREAT"),
        'write(1</job/redirected>, ""..., 10) = 10 <0.000010>',
    )
    assert found == {"/job/out.txt": FileClass.STANDARD_STREAM, "/job/redirected": DATA}
