# Belongs at REPO/packages/py_vani_io/package.py in a Spack repository (Spack 1.0 or newer).
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyVaniIo(PythonPackage):
    """Storage settings for HPC programs, from a trace of their run."""

    homepage = "https://pypi.org/project/vani-io/"
    pypi = "vani-io/vani_io-0.1.0.tar.gz"
    license("MIT AND BSD-3-Clause AND ISC")

    # From a checkout: spack dev-build py-vani-io@0.1.0. `spack checksum py-vani-io` adds published
    # versions.
    version("0.1.0")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.25:", type="build")
    depends_on("py-hatch-fancy-pypi-readme@24.1:", type="build")

    depends_on("py-click@8.2:", type=("build", "run"))
    depends_on("py-dask@2026.1.1:", type=("build", "run"))
    depends_on("py-isal@1.7:", type=("build", "run"))
    depends_on("py-jinja2@3.1.6:", type=("build", "run"))
    depends_on("py-lazy-loader@0.4:", type=("build", "run"))
    depends_on("py-networkx@3.2:", type=("build", "run"))
    depends_on("py-numpy@2.0:", type=("build", "run"))
    depends_on("py-pyarrow@23.0.1:", type=("build", "run"))
    depends_on("py-pydantic@2.11:", type=("build", "run"))
    depends_on("py-pyyaml@6.0:", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
