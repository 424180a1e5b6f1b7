#include "penstock/functions/broadcast.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::functions {
namespace {

absl::Status Refusal(absl::Span<const std::string> shapes) {
  return absl::InvalidArgumentError(
      absl::StrCat("operands could not be broadcast together: sizes must be "
                   "equal or 1, from "
                   "the last one on; got shapes ",
                   absl::StrJoin(shapes, " and "),
                   "\n  Use expand_dims() or reshape() to line them up."));
}

}  // namespace

absl::StatusOr<PartialShape> BroadcastShape(absl::Span<const ArgSpec> args) {
  int rank = 0;
  for (const ArgSpec& arg : args) {
    if (!arg.spec.shape.has_rank()) return PartialShape::UnknownRank();
    rank = std::max(rank, arg.spec.shape.rank());
  }
  PartialShape::Dims dims(rank, std::optional<int64_t>(1));
  for (const ArgSpec& arg : args) {
    const PartialShape::Dims& other = arg.spec.shape.dims();
    const size_t skip = dims.size() - other.size();
    for (size_t i = 0; i < other.size(); ++i) {
      std::optional<int64_t>& dim = dims[skip + i];
      if (other[i] == 1 || other[i] == dim) continue;
      if (dim == 1 || (!dim && other[i])) {
        dim = other[i];
      } else if (other[i]) {
        std::vector<std::string> shapes;
        for (const ArgSpec& each : args) {
          shapes.push_back(each.spec.shape.ToString());
        }
        return Refusal(shapes);
      }
    }
  }
  return PartialShape(std::move(dims));
}

bool BroadcastInto(absl::Span<int64_t> shape, absl::Span<const int64_t> other) {
  const size_t skip = shape.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& dim = shape[skip + i];
    if (other[i] == dim || other[i] == 1) continue;
    if (dim != 1) return false;
    dim = other[i];
  }
  return true;
}

absl::Status BroadcastError(
    absl::Span<const absl::Span<const int64_t>> shapes) {
  std::vector<std::string> texts;
  for (absl::Span<const int64_t> shape : shapes) {
    texts.push_back(ToString(shape));
  }
  return Refusal(texts);
}

void Walk::Add(int64_t dim, const int64_t* stride_of_operand) {
  if (dim == 1) return;
  bool continues = rank > 0;
  for (int k = 0; k < operands && continues; ++k) {
    continues = strides[k][rank - 1] == dim * stride_of_operand[k];
  }
  if (continues) {
    dims[rank - 1] *= dim;
  } else {
    dims[rank++] = dim;
  }
  for (int k = 0; k < operands; ++k)
    strides[k][rank - 1] = stride_of_operand[k];
}

void RunWalk(const Walk& walk, const std::byte* const* in, std::byte* out,
             size_t out_item_size, Loop loop) {
  const int inner = walk.rank - 1;
  const std::byte* at[Walk::kMaxOperands];
  int64_t inner_strides[Walk::kMaxOperands];
  for (int k = 0; k < walk.operands; ++k) {
    at[k] = in[k];
    inner_strides[k] = walk.rank > 0 ? walk.strides[k][inner] : 0;
  }
  if (walk.rank == 0) {
    loop(at, inner_strides, out, 1);
    return;
  }
  for (int d = 0; d < walk.rank; ++d) {
    if (walk.dims[d] == 0) return;
  }
  const int64_t inner_count = walk.dims[inner];
  int64_t index[kMaxRank + 1] = {};
  while (true) {
    loop(at, inner_strides, out, inner_count);
    out += inner_count * out_item_size;
    int d = inner - 1;
    for (; d >= 0; --d) {
      for (int k = 0; k < walk.operands; ++k) at[k] += walk.strides[k][d];
      if (++index[d] < walk.dims[d]) break;
      for (int k = 0; k < walk.operands; ++k) {
        at[k] -= walk.dims[d] * walk.strides[k][d];
      }
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

namespace {

template <typename T>
void CopyLoop(const std::byte* const* in, const int64_t* strides,
              std::byte* out, int64_t count) {
  if (strides[0] == sizeof(T)) {
    std::memcpy(out, in[0], count * sizeof(T));
    return;
  }
  const std::byte* from = in[0];
  T* to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i, from += strides[0]) {
    to[i] = *reinterpret_cast<const T*>(from);
  }
}

Loop CopyLoopFor(size_t item_size) {
  switch (item_size) {
    case 1:
      return CopyLoop<uint8_t>;
    case 2:
      return CopyLoop<uint16_t>;
    case 4:
      return CopyLoop<uint32_t>;
    case 8:
      return CopyLoop<uint64_t>;
    default:
      return CopyLoop<StringRef>;
  }
}

}  // namespace

void CopyStrided(const std::byte* in, absl::Span<const int64_t> dims,
                 absl::Span<const int64_t> strides, size_t item_size,
                 std::byte* out) {
  Walk walk;
  walk.operands = 1;
  for (size_t i = 0; i < dims.size(); ++i) walk.Add(dims[i], &strides[i]);
  RunWalk(walk, &in, out, item_size, CopyLoopFor(item_size));
}

Shape ContiguousStrides(absl::Span<const int64_t> dims, size_t item_size) {
  Shape strides(dims.size());
  int64_t stride = static_cast<int64_t>(item_size);
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

}  // namespace penstock::functions
