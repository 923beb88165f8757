"""Running a command under a tracer: Recorder where it is installed, else strace."""
