/* Classify an image with a packed network:   classify model.lbit image.ppm [how many classes]
 *
 * cc classify.c $(pkg-config --cflags --libs latentbit) -o classify
 *
 * The image is a binary PPM (P6) of the size that the network takes. `convert photo.jpg -resize 32x32!
 * image.ppm` makes one. Prints the most probable classes, best first, with their logits. */
#include <latentbit.h>
#include <stdio.h>
#include <stdlib.h>

/* The pixels of a PPM of that size, [height][width][3]; NULL if it is something else. */
static unsigned char* read_ppm(const char* path, size_t height, size_t width) {
  size_t file_width = 0, file_height = 0, n = 3 * height * width;
  unsigned char* pixels = NULL;
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  if (fscanf(file, "P6 %zu %zu 255", &file_width, &file_height) == 2 && fgetc(file) != EOF &&
      file_width == width && file_height == height) {
    pixels = malloc(n);
    if (pixels != NULL && fread(pixels, 1, n, file) != n) {
      free(pixels);
      pixels = NULL;
    }
  }
  fclose(file);
  return pixels;
}

/* Prints the largest of the logits and takes it out. */
static void print_best(const latentbit_engine* engine, float* logits, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; ++i)
    if (logits[i] > logits[best]) best = i;
  const char* name = latentbit_class_name(engine, best);
  if (name != NULL)
    printf("%.9g %s\n", logits[best], name);
  else
    printf("%.9g %zu\n", logits[best], best);
  logits[best] = -1e38f;
}

int main(int argc, char** argv) {
  char error[500];
  size_t shape[3];
  if (argc < 3) {
    fprintf(stderr, "usage: %s model.lbit image.ppm [how many classes]\n", argv[0]);
    return 2;
  }
  latentbit_engine* engine = latentbit_load(argv[1], 1, NULL, error, sizeof error);
  if (engine == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  latentbit_input_shape(engine, shape);
  size_t n = latentbit_output_size(engine), shown = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
  unsigned char* pixels = shape[0] == 3 ? read_ppm(argv[2], shape[1], shape[2]) : NULL;
  float* logits = malloc(n * sizeof *logits);
  int failed = pixels == NULL || logits == NULL;
  if (pixels == NULL)
    fprintf(stderr, "%s: the network takes a PPM of %zux%zu pixels, %zu channels\n", argv[2], shape[2],
            shape[1], shape[0]);
  if (!failed && latentbit_run_bytes(engine, pixels, 1, 1, logits, n) != 0) {
    fprintf(stderr, "%s\n", latentbit_error(engine));
    failed = 1;
  }
  for (size_t i = 0; !failed && i < n && i < shown; ++i) print_best(engine, logits, n);
  free(logits);
  free(pixels);
  latentbit_free(engine);
  return failed;
}
