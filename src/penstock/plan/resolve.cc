#include "penstock/plan/resolve.h"

#include <algorithm>
#include <string>
#include <vector>

#include "penstock/plan/convert.h"
#include "penstock/plan/token_budget.h"

namespace penstock::plan {
namespace {

// Not the number of cores, as in tf.data: it decides the order, and a state
// saved on one machine must fit the pipeline as another builds it.
constexpr int64_t kDefaultCycle = 8;
constexpr int64_t kDefaultOpenRows = 16;

void SetDefault(Value* value, int64_t number) {
  if (value->kind_case() != Value::KIND_NOT_SET) return;
  Tensor* constant = value->mutable_constant();
  constant->set_dtype(INT64);
  constant->set_data(&number, sizeof(number));
}

template <typename Op>
void SetSequence(Op* op) {
  SetDefault(op->mutable_start(), 0);
  SetDefault(op->mutable_step(), 1);
  if (op->dtype() == DTYPE_UNSPECIFIED) op->set_dtype(INT64);
}

Tensor Zero(penstock::DType dtype) {
  Tensor zero;
  zero.set_dtype(static_cast<DType>(dtype));
  if (dtype == penstock::DType::kString) {
    zero.add_strings();
  } else {
    zero.set_data(std::string(ItemSize(dtype), '\0'));
  }
  return zero;
}

template <typename Op>
void SetPadding(Op* op, const penstock::ElementSpec& input) {
  const std::vector<penstock::TensorSpec> leaves = input.Flatten();
  const bool has_shapes = op->shapes_size() > 0;
  const bool has_padding = op->padding_size() > 0;
  const bool is_for_all = op->padding_size() == 1;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!has_shapes) *op->add_shapes() = ToProto(leaves[i].shape);
    if (!has_padding) *op->add_padding() = Zero(leaves[i].dtype);
    if (is_for_all && i > 0) *op->add_padding() = Tensor(op->padding(0));
  }
}

}  // namespace

void Resolve(Node& node, absl::Span<const penstock::ElementSpec> inputs,
             const BuildContext& context) {
  switch (node.op_case()) {
    case Node::kRange:
      return SetSequence(node.mutable_range());
    case Node::kCounter:
      return SetSequence(node.mutable_counter());
    case Node::kEnumerate:
      return SetDefault(node.mutable_enumerate()->mutable_start(), 0);
    case Node::kReadFiles:
      if (node.read_files().has_fixed_length()) {
        ReadFiles::FixedLength* format =
            node.mutable_read_files()->mutable_fixed_length();
        SetDefault(format->mutable_header_bytes(), 0);
        SetDefault(format->mutable_footer_bytes(), 0);
      }
      return;
    case Node::kInterleave: {
      Interleave* op = node.mutable_interleave();
      if (op->cycle_length() == 0) {
        op->set_cycle_length(kDefaultCycle);
      }
      if (op->block_length() == 0) op->set_block_length(1);
      return;
    }
    case Node::kPaddedBatch:
      if (inputs.size() == 1)
        SetPadding(node.mutable_padded_batch(), inputs[0]);
      return;
    case Node::kBucketBySequenceLength: {
      BucketBySequenceLength* op = node.mutable_bucket_by_sequence_length();
      if (inputs.size() == 1 && !op->no_padding()) SetPadding(op, inputs[0]);
      if (op->has_max_tokens() && op->batch_sizes().empty()) {
        for (int64_t size : BatchSizesOf(*op)) op->add_batch_sizes(size);
      }
      return;
    }
    case Node::kBatchByTokens:
      if (inputs.size() == 1) {
        SetPadding(node.mutable_batch_by_tokens(), inputs[0]);
      }
      return;
    case Node::kRaggedBatch:
      if (node.ragged_batch().row_splits_dtype() == DTYPE_UNSPECIFIED) {
        node.mutable_ragged_batch()->set_row_splits_dtype(INT64);
      }
      return;
    case Node::kPack: {
      Pack* op = node.mutable_pack();
      if (op->open_rows() == 0) op->set_open_rows(kDefaultOpenRows);
      if (inputs.size() == 1 && op->padding_size() == 0) {
        for (const penstock::TensorSpec& leaf : inputs[0].Flatten()) {
          *op->add_padding() = Zero(leaf.dtype);
        }
      }
      return;
    }
    case Node::kWindow: {
      Window* op = node.mutable_window();
      if (op->shift().kind_case() == Value::KIND_NOT_SET) {
        *op->mutable_shift() = op->size();
      }
      return SetDefault(op->mutable_stride(), 1);
    }
    default:
      return;
  }
}

}  // namespace penstock::plan
