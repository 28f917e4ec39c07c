// Which layers of a packed network run as one step: what produces a value takes along what follows it.
//
//     producer -> scale, bias -> + shortcut -> activation -> sign and pack
//
// A layer joins the step of its input if nobody else reads that input; a sign joins even then, because a step
// can write a real value and its bits. A convolution also takes a max-pool along. Pure bookkeeping: no arrays
// touched.
#pragma once

#include "lbit/network.h"

namespace latentbit {

constexpr int kNoLayer = -2;  // as the number of a layer

// The element-wise layers that a step applies to what it computes, in this order; kNoLayer where absent.
struct Chain {
  int affine = kNoLayer, add = kNoLayer;
  int residual = kNoLayer;  // layer whose value the addition adds
  int repeat =
      1;  // how often its channels are repeated: a concat of a value with itself is never carried out
  int activation = kNoLayer, sign = kNoLayer;
  int value = kNoLayer;  // layer of the real result, before the sign
  bool keep = true;      // whether anyone but the sign reads the real result
};

// A producing layer and what it takes along; position orders the steps.
struct PlannedStep {
  int layer;
  Chain chain;
  int position;
  int pool = kNoLayer;
  Chain pool_chain;

  std::vector<int> layers() const;  // all of them
};

// The steps of a network in an order in which they can run.
std::vector<PlannedStep> plan(const Network& network);

}  // namespace latentbit
