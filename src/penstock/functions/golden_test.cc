// Every elementwise function, cast and reduction against numpy, over all dtypes
// that numpy has: testdata/golden.txt, written by testdata/make_golden.py.
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "gtest/gtest.h"
#include "penstock/functions/call_for_test.h"

namespace penstock::functions {
namespace {

DType FromShort(const std::string& name) {
  static const auto* const names = new std::map<std::string, DType>{
      {"b1", DType::kBool},      {"i1", DType::kInt8},
      {"i2", DType::kInt16},     {"i4", DType::kInt32},
      {"i8", DType::kInt64},     {"u1", DType::kUint8},
      {"u2", DType::kUint16},    {"u4", DType::kUint32},
      {"u8", DType::kUint64},    {"f2", DType::kFloat16},
      {"f4", DType::kFloat32},   {"f8", DType::kFloat64},
      {"c8", DType::kComplex64}, {"c16", DType::kComplex128}};
  return names->at(name);
}

std::string FromHex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(
        static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Column Scalars(DType dtype, const std::string& bytes) {
  Buffer values = Buffer::Allocate(bytes.size());
  std::memcpy(values.MutableAs<char>(), bytes.data(), bytes.size());
  const auto rows = static_cast<int64_t>(bytes.size() / ItemSize(dtype));
  return Column::Dense(dtype, {}, rows, std::move(values));
}

std::string Bytes(const Column& column) {
  return std::string(column.values().As<char>(), column.values().size());
}

// The real numbers of a float or complex column.
std::vector<double> Reals(DType dtype, const std::string& bytes) {
  std::vector<double> reals;
  auto read = [&](auto item) {
    for (size_t i = 0; i < bytes.size(); i += sizeof(item)) {
      std::memcpy(&item, bytes.data() + i, sizeof(item));
      if constexpr (std::is_same_v<decltype(item), Half>) {
        reals.push_back(static_cast<float>(item));
      } else {
        reals.push_back(static_cast<double>(item));
      }
    }
  };
  if (dtype == DType::kFloat16) read(Half{});
  if (dtype == DType::kFloat32 || dtype == DType::kComplex64) read(float{});
  if (dtype == DType::kFloat64 || dtype == DType::kComplex128) read(double{});
  return reals;
}

template <typename T, typename NanT>
void Canonical(std::string& bytes, NanT nan_bits) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T item;
    std::memcpy(&item, bytes.data() + i, sizeof(T));
    double value;
    if constexpr (std::is_same_v<T, Half>) {
      value = static_cast<float>(item);
    } else {
      value = item;
    }
    if (std::isnan(value)) std::memcpy(bytes.data() + i, &nan_bits, sizeof(T));
    if (value == 0) std::memset(bytes.data() + i, 0, sizeof(T));
  }
}

// As make_golden.py: one NaN, no negative zero, FNV-1a.
std::string Hash(DType dtype, std::string bytes) {
  if (dtype == DType::kFloat16) Canonical<Half>(bytes, uint16_t{0x7e00});
  if (dtype == DType::kFloat32 || dtype == DType::kComplex64) {
    Canonical<float>(bytes, uint32_t{0x7fc00000});
  }
  if (dtype == DType::kFloat64 || dtype == DType::kComplex128) {
    Canonical<double>(bytes, uint64_t{0x7ff8000000000000});
  }
  uint64_t hash = 0xcbf29ce484222325;
  for (char byte : bytes) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  char text[16];
  std::snprintf(text, sizeof(text), "%08x", static_cast<uint32_t>(hash));
  return text;
}

bool IsNear(DType dtype, const std::string& got, const std::string& want) {
  if (got.size() != want.size()) return false;
  const std::vector<double> a = Reals(dtype, got);
  const std::vector<double> b = Reals(dtype, want);
  const double epsilon = dtype == DType::kFloat16     ? 2e-3
                         : dtype == DType::kFloat32   ? 6e-7
                         : dtype == DType::kFloat64   ? 1e-15
                         : dtype == DType::kComplex64 ? 3e-6
                                                      : 1e-14;
  const bool is_complex = IsComplex(dtype);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    // A complex number's parts share their scale.
    const double scale =
        is_complex ? std::hypot(b[i & ~size_t{1}], b[i | 1]) : std::abs(b[i]);
    if (!(std::abs(a[i] - b[i]) <= epsilon * scale)) return false;
  }
  return true;
}

class Golden : public testing::Test {
 protected:
  // Runs a call over rows; an empty column stands for an error.
  static std::string Run(const std::string& function, std::vector<Step> steps,
                         std::vector<Column> arguments, Attrs attrs,
                         const std::string& dtype, const std::string& want) {
    std::vector<TensorSpec> specs;
    for (const Column& column : arguments) {
      specs.push_back({column.dtype(), PartialShape(absl::Span<const int64_t>(
                                           column.shape()))});
    }
    CallStep call{function, {}, std::move(attrs)};
    for (uint32_t i = 0; i < steps.size(); ++i) call.args.push_back(i);
    const auto last = static_cast<uint32_t>(steps.size());
    steps.push_back(std::move(call));
    absl::StatusOr<Program> program =
        Program::Make(std::move(steps), {last}, specs, {});
    if (!program.ok()) {
      return dtype == "error" ? "" : std::string(program.status().message());
    }
    if (dtype == "error") return "an error was expected";
    const DType wanted = FromShort(dtype);
    if (program->output_specs()[0].dtype != wanted) {
      return "dtype " + program->output_specs()[0].ToString();
    }
    EvalContext context;
    context.rows = arguments[0].rows();
    absl::StatusOr<std::vector<Column>> results =
        program->Run(arguments, {}, context);
    if (!results.ok()) return std::string(results.status().message());
    const std::string bytes = Bytes(results->at(0));
    const bool is_same = want[0] == '='
                             ? Hash(wanted, bytes) == want.substr(1)
                             : IsNear(wanted, bytes, FromHex(want.substr(1)));
    if (is_same) return "";
    std::string text;
    for (int64_t row = 0; row < context.rows; ++row) {
      text += RowText(results->at(0), row) + " ";
    }
    if (want[0] == '~') {
      text += "instead of ";
      const Column right = Scalars(wanted, FromHex(want.substr(1)));
      for (int64_t row = 0; row < right.rows(); ++row) {
        text += RowText(right, row) + " ";
      }
    }
    return text;
  }

  std::map<std::string, std::string> sets_;
};

Step WeakStep(const std::string& kind, const std::string& text) {
  Column value;
  if (kind == "int") value = MakeColumn<int64_t>({std::stoll(text)});
  if (kind == "float") value = MakeColumn<double>({std::stod(text)});
  if (kind == "bool") value = MakeColumn<bool>({text == "True"});
  if (kind == "complex") value = MakeColumn<std::complex<double>>({{0, 1}});
  return ConstantStep{value, /*is_weak=*/true};
}

TEST_F(Golden, AsNumpy) {
  std::ifstream file(PENSTOCK_FUNCTIONS_GOLDEN);
  ASSERT_TRUE(file.good());
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string what, name, set, dtype, result, want;
    words >> what;
    ++lines;
    std::string problem;
    if (what == "set") {
      words >> name >> dtype >> want;
      sets_[name + dtype] = FromHex(want);
    } else if (what == "unary") {
      words >> name >> set >> dtype >> result >> want;
      const Column x = Scalars(FromShort(dtype), sets_[set + dtype]);
      problem = Run(name, {ArgumentStep{0}}, {x}, {}, result, want);
    } else if (what == "binary") {
      std::string set2, dtype2;
      words >> name >> set >> dtype >> set2 >> dtype2 >> result >> want;
      const std::string& a = sets_[set + dtype];
      const std::string& b = sets_[set2 + dtype2];
      const size_t size_a = ItemSize(FromShort(dtype));
      const size_t size_b = ItemSize(FromShort(dtype2));
      std::string left, right;
      for (size_t i = 0; i < a.size(); i += size_a) {
        for (size_t j = 0; j < b.size(); j += size_b) {
          left += a.substr(i, size_a);
          right += b.substr(j, size_b);
        }
      }
      problem = Run(
          name, {ArgumentStep{0}, ArgumentStep{1}},
          {Scalars(FromShort(dtype), left), Scalars(FromShort(dtype2), right)},
          {}, result, want);
    } else if (what == "weak" || what == "kaew") {
      std::string kind, value;
      words >> name >> set >> dtype >> kind >> value >> result >> want;
      std::vector<Step> steps{ArgumentStep{0}, WeakStep(kind, value)};
      if (what == "kaew") std::swap(steps[0], steps[1]);
      problem =
          Run(name, steps, {Scalars(FromShort(dtype), sets_[set + dtype])}, {},
              result, want);
    } else if (what == "cast") {
      std::string to;
      words >> set >> dtype >> to >> result >> want;
      problem = Run("cast", {ArgumentStep{0}},
                    {Scalars(FromShort(dtype), sets_[set + dtype])},
                    {{"dtype", FromShort(to)}}, result, want);
    } else if (what == "reduce") {
      std::string axis;
      words >> name >> set >> dtype >> axis >> result >> want;
      Attrs attrs;
      if (axis != "None") attrs["axis"] = int64_t{std::stoll(axis)};
      const Column x = Scalars(FromShort(dtype), sets_[set + dtype]);
      problem = Run(name, {ArgumentStep{0}}, {x.Reshape(1, {3, 4})}, attrs,
                    result, want);
    } else {
      problem = "what is this?";
    }
    if (!problem.empty()) {
      ADD_FAILURE() << line.substr(0, 120) << "\n  got " << problem;
    }
  }
  EXPECT_GT(lines, 5000);
}

}  // namespace
}  // namespace penstock::functions
