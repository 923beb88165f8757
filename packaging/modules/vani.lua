-- Lmod: put it at MODULEPATH/vani/0.1.0.lua and set `root`, the prefix of the virtual environment with Vani.
local root = "/apps/vani/0.1.0"

help([[Vani tells which storage settings a program needs, from a trace of its run.
Start with: vani demo]])
whatis("Name: Vani")
whatis("Version: 0.1.0")
whatis("Description: storage settings for HPC programs, from a trace of their run")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
-- Machine, cache and contact line for all users; see docs/centre.md.
setenv("VANI_SITE", pathJoin(root, "etc/site.toml"))
