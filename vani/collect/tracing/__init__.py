"""Running a command so that a tracer watches it: Recorder where it is installed, else strace."""
