"""Models that run in this process, from GGUF files: the provider `local`, the wire API `llama-cpp`.

For an application; all of it is cheap, imports nothing foreign and reads at most the header of a file:

    Models(weights_folders=[folder])                      makes `local/smollm2-135m` look there for its weights
    Models.find("local", "/path/x.gguf")                  any GGUF file; also ~/x.gguf, ./x.gguf, x.gguf
    Models.list("local")                                  what can be asked now: nothing without engine or weights
    Models.aclose()                                       ends answers, and frees the memory of what was loaded
    Provider.automatic                                    false for `local`: it is offered, never chosen
    rows.local_problem(folders)                           why the packaged model cannot be asked, or None
    weights.find_weights(folders)                         its file, or None
    weights.PACKAGE, PACKAGE_VERSION, FILE_NAME, FILE_SIZE, FILE_SHA256
    weights.engine_installed()                            whether the extra `local` is there

What a user may want to know (measured with the packaged model, on one core of a virtual machine of 2026):

- It loads in half a second, at its first question. For that time the whole program stands still: xllamacpp does
  not let others run meanwhile. A model of several gigabytes takes seconds.
- It needs 350 MB of memory: 190 MB for its window of 8,192 tokens, the rest for weights and working space; up to
  256 MB more when it goes back and forth between conversations.
- It reads about 110 tokens of a prompt and writes about 40 in a second, with one thread. Two threads read 200; they
  are taken where two processors are idle, since on a busy machine they read fewer than one does. What was read is
  kept: the next turn of a conversation begins where the last one ended.
- An abort ends the answer within a millisecond. The model itself stops at its next token, or after the 64 tokens of
  the prompt that it is reading (0.1 to 0.7 s); the next question waits for that.
- It can't see images (each becomes a note), does not think (levels other than `off` are clamped), and answers one
  question after the other. It calls one tool at a time. A call is JSON for a tool that exists and fits its schema,
  as far as a grammar can say it; a call cut at the token limit is not run.
- A process that was forked (not spawned) from one that has loaded a model loads its own, and has to end as those of
  `multiprocessing` do, with `os._exit`: llama.cpp waits for its threads at a usual exit, and they did not come along.
- A file's window is what it was trained for, as far as a gigabyte of memory goes, unless models.json says otherwise.
"""
