"""Types of numbers, with their bounds and units, and the names of layers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
Bytes = Annotated[int, Field(ge=0, description="bytes")]
Seconds = Annotated[float, Field(ge=0, description="seconds")]
Share = Annotated[float, Field(ge=0, le=1, description="share, 0..1")]
Rate = Annotated[float, Field(ge=0, description="bytes per second")]
LayerName = Literal["posix", "stdio", "mpiio", "hdf5", "pnetcdf", "netcdf", "mpi", "gpu", "user"]
