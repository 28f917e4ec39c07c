/* latentbit: run a packed network (.lbit) from C. docs/c_api.md explains it with an example.
 *
 * Nothing here throws, aborts or prints, and there is nothing to initialise. Engines share nothing: give
 * every thread its own. Calls that share one engine take turns, but its last error is then anybody's. */
#ifndef LATENTBIT_H
#define LATENTBIT_H

#include <stddef.h>
#include <stdint.h>

#if defined(LATENTBIT_BUILDS) && defined(__GNUC__)
#define LATENTBIT_API __attribute__((visibility("default")))
#else
#define LATENTBIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A network that is ready to run. */
typedef struct latentbit_engine latentbit_engine;

/* "0.2.0": of the library that runs, which need not be that of this header. */
LATENTBIT_API const char* latentbit_version(void);

/* Reads a file, checks all of it and makes it ready. NULL if that cannot be done: `error` then holds one line
 * that says why, cut to `error_size` bytes with the 0 at its end. `error` may be NULL.
 *
 * threads  1 to 1024; the calling thread counts as one.
 * kernels  a set such as "avx2", or NULL for the best that this CPU can run. */
LATENTBIT_API latentbit_engine* latentbit_load(const char* path, int threads, const char* kernels,
                                               char* error, size_t error_size);

/* The same for the content of a file: of an array in the program, or of a file that it has mapped. The bytes
 * are not needed any more when this returns. */
LATENTBIT_API latentbit_engine* latentbit_load_memory(const void* content, size_t size, int threads,
                                                      const char* kernels, char* error, size_t error_size);

/* NULL is allowed. */
LATENTBIT_API void latentbit_free(latentbit_engine* engine);

/* Channels, height and width of an image. */
LATENTBIT_API void latentbit_input_shape(const latentbit_engine* engine, size_t shape[3]);
/* Of what the network gives for an image: returns 1 and sets shape[0] for a vector, or returns 3 and sets
 * channels, height and width for a map. */
LATENTBIT_API int latentbit_output_shape(const latentbit_engine* engine, size_t shape[3]);
/* Numbers in an image, and in what the network gives for one. */
LATENTBIT_API size_t latentbit_input_size(const latentbit_engine* engine);
LATENTBIT_API size_t latentbit_output_size(const latentbit_engine* engine);

/* The name of an output in UTF-8; NULL if the file has none or the number is too large. */
LATENTBIT_API const char* latentbit_class_name(const latentbit_engine* engine, size_t output);
/* What a float image is made of: (pixel / 255 - mean) / std, one number per channel. If the file names none,
 * mean is 0 and std 1. Images of bytes are normalised by the engine. */
LATENTBIT_API const float* latentbit_mean(const latentbit_engine* engine);
LATENTBIT_API const float* latentbit_std(const latentbit_engine* engine);
/* Training scaled the short side of an image to so many pixels and cut out the centre; 0 if the file does not
 * say. */
LATENTBIT_API int latentbit_resize(const latentbit_engine* engine);
/* Where the network comes from: the notes of the file, a JSON object. */
LATENTBIT_API const char* latentbit_source(const latentbit_engine* engine);

/* Runs n images, 1 to 65536. `images` is [n][channels][height][width], normalised; `out` is
 * [n][latentbit_output_size] and out_size its length in floats, which must be exactly that. Returns 0, or -1
 * with the reason in latentbit_error. */
LATENTBIT_API int latentbit_run(latentbit_engine* engine, const float* images, size_t n, float* out,
                                size_t out_size);
/* The same for pixels from 0 to 255, as image files have them: [n][channels][height][width], or
 * [n][height][width][channels] if channels_last is not 0. */
LATENTBIT_API int latentbit_run_bytes(latentbit_engine* engine, const uint8_t* images, int channels_last,
                                      size_t n, float* out, size_t out_size);

/* Layers that run together are a step. Its name is that of the first of them, its op what it computes, its
 * kernels the set it runs with; NULL if the number is too large. */
LATENTBIT_API size_t latentbit_step_count(const latentbit_engine* engine);
LATENTBIT_API const char* latentbit_step_name(const latentbit_engine* engine, size_t step);
LATENTBIT_API const char* latentbit_step_op(const latentbit_engine* engine, size_t step);
LATENTBIT_API const char* latentbit_step_kernels(const latentbit_engine* engine, size_t step);
/* As latentbit_run, and the microseconds of every step into an array of latentbit_step_count numbers. */
LATENTBIT_API int latentbit_profile(latentbit_engine* engine, const float* images, size_t n, float* out,
                                    size_t out_size, double* microseconds);

LATENTBIT_API int latentbit_threads(const latentbit_engine* engine);
/* Name of the set of kernels. */
LATENTBIT_API const char* latentbit_kernels(const latentbit_engine* engine);

/* Why the last call that returned -1 did; "" if none did. Valid until the next such call with this engine. */
LATENTBIT_API const char* latentbit_error(const latentbit_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
