"""Work for a batch system before and after each job: nothing here may take long, and nothing may fail the job.

Modules of this room load only the standard library: a prolog that waits for another one pays for nothing else.
"""
