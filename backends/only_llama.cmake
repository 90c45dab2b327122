# For building llama-cpp-python in half the time: CMAKE_ARGS=-DCMAKE_PROJECT_INCLUDE=<path of this file> pip install …
# Leaves out what nothing here uses: pictures (mtmd) and the helpers of llama.cpp's own programs (common).
set(LLAMA_BUILD_COMMON OFF)
set(LLAVA_BUILD OFF)
