"""A fluid simulation of jobs that share the processes, nodes, servers and targets of a machine.

Bytes are a fluid. Each flow passes resources (its process, its compute node, an I/O node, servers, targets), and at
any time the rates are max-min fair: no flow can get more without taking from one that has no more than it. Rates
change where a flow ends, a phase begins, or a resource fails or comes back.

`rates` shares resources among flows, `events` moves time, `machine` and `flows` make resources and flows of a
scenario, `placement` and `choices` decide the targets of files and the I/O nodes of jobs.
"""
