#include "lbit/plan.h"

#include <algorithm>

namespace latentbit {
namespace {

// How an op takes part in fusion.
enum class Role { producer, affine, add, activation, sign, move };

Role role_of(const std::string& op) {
  if (op == "affine") return Role::affine;
  if (op == "add") return Role::add;
  if (op == "sign") return Role::sign;
  if (op == "prelu" || op == "relu" || op == "hardtanh" || op == "clamp") return Role::activation;
  if (op == "concat" || op == "flatten" || op == "reshape" || op == "permute") return Role::move;
  return Role::producer;
}

// Ops whose step is sure to take an add along that follows them.
bool is_adder(const std::string& op) {
  return op == "conv" || op == "linear" || op == "binary_conv" || op == "binary_linear" || op == "affine";
}

class Planner {
 public:
  explicit Planner(const Network& network)
      : layers_(network.layers),
        output_(static_cast<int>(layers_.size()) - 1),
        readers_(layers_.size() + 1),
        taken_(layers_.size()) {
    for (int i = 0; i <= output_; ++i)
      for (int source : layers_[i].sources) readers(source).push_back(i);
  }

  std::vector<PlannedStep> steps() {
    std::vector<PlannedStep> steps;
    for (int i = 0; i <= output_; ++i)
      if (!taken_[i] && !is_virtual(i)) steps.push_back(step(i));
    std::stable_sort(steps.begin(), steps.end(),
                     [](const PlannedStep& a, const PlannedStep& b) { return a.position < b.position; });
    return steps;
  }

 private:
  Role role(int layer) const { return role_of(layers_[layer].op); }
  std::vector<int>& readers(int layer) { return readers_[layer + 1]; }  // the input is number -1

  PlannedStep step(int i) {
    const Layer& layer = layers_[i];
    PlannedStep step{i, {}, i, kNoLayer, {}};
    step.chain.value = i;
    if (role(i) == Role::move || (layer.form.bits && role(i) != Role::sign)) return step;
    if (role(i) != Role::producer) begin(step);
    extend(step);
    const int pool = only_reader(step.chain.value);
    if (layer.op == "conv" && pool != kNoLayer && layers_[pool].op == "max_pool" && can_pool(step.chain)) {
      taken_[pool] = true;
      step.pool = pool;
      step.pool_chain.value = pool;
      add_sign(step.pool_chain);
    }
    return step;
  }

  // An element-wise layer that joined nobody starts a step of its own.
  void begin(PlannedStep& step) {
    Chain& chain = step.chain;
    switch (role(step.layer)) {
      case Role::affine:
        chain.affine = step.layer;
        break;
      case Role::add:
        chain.add = step.layer;
        take_shortcut(chain, layers_[step.layer].sources[1]);
        break;
      case Role::activation:
        chain.activation = step.layer;
        break;
      default:
        chain.sign = step.layer;
        chain.keep = false;
        chain.value = layers_[step.layer].sources[0];
    }
  }

  void extend(PlannedStep& step) {
    Chain& chain = step.chain;
    if (chain.sign != kNoLayer) return;
    if (chain.add == kNoLayer && chain.activation == kNoLayer) {
      const int after = only_reader(chain.value);
      if (after != kNoLayer && role(after) == Role::add) {
        const std::vector<int>& terms = layers_[after].sources;
        if (terms[0] != terms[1]) {
          chain.add = after;
          take_shortcut(chain, terms[0] == chain.value ? terms[1] : terms[0]);
          take(chain, after);
          step.position = after;
        }
      }
    }
    if (chain.activation == kNoLayer) {
      const int after = only_reader(chain.value);
      if (after != kNoLayer && role(after) == Role::activation) {
        chain.activation = after;
        take(chain, after);
      }
    }
    add_sign(chain);
  }

  void add_sign(Chain& chain) {
    const std::vector<int>& its_readers = readers(chain.value);
    for (int reader : its_readers)
      if (role(reader) == Role::sign) {
        chain.sign = reader;
        taken_[reader] = true;
        break;
      }
    chain.keep = chain.sign == kNoLayer || its_readers.size() > 1 || chain.value == output_;
  }

  void take(Chain& chain, int layer) {
    taken_[layer] = true;
    chain.value = layer;
  }

  int only_reader(int layer) {
    const std::vector<int>& its_readers = readers(layer);
    if (its_readers.size() != 1 || layer == output_ || taken_[its_readers[0]]) return kNoLayer;
    return its_readers[0];
  }

  bool can_pool(const Chain& chain) const {
    const Shape& shape = layers_[chain.value].form.shape;
    return chain.add == kNoLayer && chain.sign == kNoLayer && (shape[1] != 1 || shape[2] != 1);
  }

  void take_shortcut(Chain& chain, int layer) {
    const bool repeats = layer != kNetworkInput && is_virtual(layer);
    chain.residual = repeats ? layers_[layer].sources[0] : layer;
    chain.repeat = repeats ? static_cast<int>(layers_[layer].sources.size()) : 1;
  }

  // A concat of one value with itself that only an add reads.
  bool is_virtual(int i) {
    const Layer& layer = layers_[i];
    if (layer.op != "concat" || i == output_ || readers(i).size() != 1) return false;
    for (int source : layer.sources)
      if (source != layer.sources[0]) return false;
    const int reader = readers(i)[0];
    if (role(reader) != Role::add) return false;
    const std::vector<int>& terms = layers_[reader].sources;
    // The add's other input must be the side that computes, which leaves the concat to be read.
    const int other = terms[0] == i ? terms[1] : terms[0];
    return terms[0] != terms[1] && other != kNetworkInput && is_adder(layers_[other].op) &&
           readers(other).size() == 1;
  }

  const std::vector<Layer>& layers_;
  const int output_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> taken_;
};

}  // namespace

std::vector<int> PlannedStep::layers() const {
  std::vector<int> all{layer};
  const auto add = [&](int member) {
    if (member != kNoLayer && member != layer) all.push_back(member);
  };
  for (int member : {chain.affine, chain.add, chain.activation, chain.sign, pool}) add(member);
  for (int member : {pool_chain.affine, pool_chain.add, pool_chain.activation, pool_chain.sign}) add(member);
  return all;
}

std::vector<PlannedStep> plan(const Network& network) { return Planner(network).steps(); }

}  // namespace latentbit
