#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cpu.h"

namespace nb = nanobind;

NB_MODULE(_native, m) {
  m.doc() = "Native code of latentbit.";
  m.def("cpu_features", &latentbit::cpu_features,
        "Instruction sets that this CPU has and its OS saves.");
}
