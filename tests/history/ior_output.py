"""IOR output in the forms of its versions 3.0, 3.3 and (as JSON) 4.0."""

from __future__ import annotations

import json
from collections.abc import Sequence

MiB = 1 << 20


def text_30(seconds: Sequence[float], nodes: int = 3, per_node: int = 16, block: int = 64) -> str:
    """Options with `=`, clients in one line, without number of nodes and latency."""
    tasks = nodes * per_node
    rows = "".join(
        f"write     {tasks * block / time:<10.2f} {block * 1024:<10} 1024.00    0.001      {time:<10} 0.0001     {time:<10} {n}\n"
        f"read      {9999:<10.2f} {block * 1024:<10} 1024.00    0.001      0.01       0.0001     0.01       {n}\n"
        for n, time in enumerate(seconds)
    )
    return f"""IOR-3.0.1: MPI Coordinated Test of Parallel I/O

Began: Tue Mar  1 10:00:00 2016
Command line used: ior -a POSIX -w -r -b 64m -t 1m
Machine: Linux n1

Test 0 started: Tue Mar  1 10:00:00 2016
Summary:
\tapi                = POSIX
\ttest filename      = testFile
\taccess             = single-shared-file
\tordering in a file = sequential offsets
\tclients            = {tasks} ({per_node} per node)
\trepetitions        = {len(seconds)}
\txfersize           = 1 MiB
\tblocksize          = {block} MiB
\taggregate filesize = {tasks * block / 1024} GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
{rows}
Max Write: 1.00 MiB/sec (1.05 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev    Mean(s) Test# #Tasks tPN reps
write        1024.00     768.00     896.00     128.00    3.50000 0 48 16 2

Finished: Tue Mar  1 10:00:20 2016
"""


def text_33(seconds: Sequence[float], nodes: int = 8, per_node: int = 32, block: int = 25 << 10) -> str:
    """Options with `:`, the number of nodes, latency, and lines of removal."""
    tasks = nodes * per_node
    rows = "".join(
        f"write     {tasks * block / time:<10.5g} 75230      0.003248    {block << 10:<11} 1024.00    0.010004   "
        f"{time:<10} 0.007280   {time:<10} {n}   \n"
        "remove    -          -          -           -          -          -          -          -          0.863602   0\n"
        for n, time in enumerate(seconds)
    )
    return f"""IOR-3.3.0: MPI Coordinated Test of Parallel I/O
Began               : Thu Sep 28 18:15:53 2023
Command line        : ior -w -i1 -t1M -b 25G -F -g -e -o /beegfs/scratch/
Machine             : Linux n1
TestID              : 0
FS                  : 1509.0 TiB   Used FS: 0.9%   Inodes: 0.0 Mi   Used Inodes: -nan%

Options:
api                 : POSIX
apiVersion          :
test filename       : /beegfs/scratch/
access              : file-per-process
type                : independent
segments            : 1
nodes               : {nodes}
tasks               : {tasks}
clients per node    : {per_node}
repetitions         : {len(seconds)}
xfersize            : 1 MiB
blocksize           : {block >> 10} GiB
aggregate filesize  : {tasks * block / (1 << 20):g} TiB

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
{rows}Max Write: 75215.15 MiB/sec (78868.80 MB/sec)
"""


def json_40(
    seconds: Sequence[float], nodes: int = 2, per_node: int = 4, block: int = 1, *, nested: bool = False
) -> str:
    """Output of `-O summaryFormat=JSON`; older versions nest the results of a repetition."""
    tasks = nodes * per_node
    results = [
        {"access": access, "bwMiB": 2 * tasks * block / time, "openTime": 0.001, "totalTime": time}
        for time in seconds
        for access in ("write", "read")
    ]
    return json.dumps(
        {
            "Version": "4.0.0",
            "tests": [
                {
                    "TestID": 0,
                    "Parameters": {
                        "api": "POSIX", "tasksPerNode": per_node, "deadlineForStonewall": 0, "segmentCount": 2,
                        "transferSize": 262144, "blockSize": block * MiB,
                    },
                    "Options": {
                        "api": "POSIX", "access": "file-per-process", "type": "independent", "nodes": nodes,
                        "tasks": tasks, "clients per node": per_node, "stripe count": "4",
                    },
                    "Results": [results] if nested else results,
                }
            ],
            "summary": [{"operation": "write", "API": "POSIX"}],
        },
        indent=1,
    )  # fmt: skip
