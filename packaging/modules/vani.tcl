#%Module1.0
# Environment Modules: put it at MODULEPATH/vani/0.1.0 and set root, the prefix of the virtual environment with Vani.
set root /apps/vani/0.1.0

proc ModulesHelp {} {
    puts stderr "Vani tells which storage settings a program needs, from a trace of its run. Start with: vani demo"
}
module-whatis "Vani 0.1.0: storage settings for HPC programs, from a trace of their run"

prepend-path PATH $root/bin
prepend-path MANPATH $root/share/man
# Machine, cache and contact line for all users; see docs/centre.md.
setenv VANI_SITE $root/etc/site.toml
