"""A fluid simulation of jobs that share the processes, nodes, servers and targets of a machine.

Bytes are a fluid. Each flow passes resources (its process, its compute node, an I/O node, servers, targets), and
rates are max-min fair at any time: no flow can get more without taking from one that has no more itself. Rates
change when a flow ends, a phase begins, or a resource fails or recovers.

`rates` shares resources among flows, `events` advances time, `machine` and `flows` build the resources and flows of a
scenario, and `placement` and `choices` choose the targets of files and the I/O nodes of jobs.
"""
