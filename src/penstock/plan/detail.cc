// Operators' names and parameters in a few words.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/plan/cardinality.h"
#include "penstock/plan/convert.h"
#include "penstock/plan/expect.h"
#include "penstock/plan/print.h"

namespace penstock::plan {
namespace {

constexpr size_t kMaxText = 40;
constexpr int kMaxItems = 3;
// Boundaries may be nobody's but the engine's: here they are read.
constexpr int kMaxBuckets = 32;

// Comma-separated parameters; what is unset or false is left out.
class Words final {
 public:
  Words& Add(std::string word) {
    if (!word.empty()) words_.push_back(std::move(word));
    return *this;
  }
  Words& Set(absl::string_view name, const std::string& value) {
    return Add(absl::StrCat(name, "=", value));
  }
  Words& Flag(absl::string_view name, bool is_set) {
    return Add(is_set ? std::string(name) : "");
  }
  std::string Join() const { return absl::StrJoin(words_, ", "); }

 private:
  std::vector<std::string> words_;
};

std::string Quoted(const std::string& text) {
  const bool is_long = text.size() > kMaxText;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kMaxText)),
                      is_long ? "…'" : "'");
}

// How many tokens a batch may have, and what is done with longer elements.
template <typename Op>
std::string BudgetOf(const Op& op) {
  std::string text = absl::StrCat("max_tokens=", op.max_tokens());
  if (op.too_long() == TOO_LONG_IS_ALONE) {
    absl::StrAppend(&text, ", too_long='alone'");
  }
  if (op.too_long() == TOO_LONG_IS_DROPPED) {
    absl::StrAppend(&text, ", too_long='drop'");
  }
  return text;
}

std::string ReceivedText(const Received& op) {
  if (!op.has_distribution()) return "";
  const Distribution& given = op.distribution();
  Words words;
  words.Add(absl::StrCat("'", given.address(), "'"));
  if (!given.job().empty()) words.Set("job", Quoted(given.job()));
  words.Flag("at_most_once", given.visitation() == Distribution::AT_MOST_ONCE);
  words.Flag("each_worker", given.visitation() == Distribution::EACH_WORKER);
  if (given.visitation() == Distribution::STATIC) {
    words.Set("static", absl::AsciiStrToLower(
                            Distribution::Sharding_Name(given.sharding())));
  }
  words.Flag("in order", given.is_ordered());
  if (given.consumers() > 0) {
    words.Add(
        absl::StrCat("consumer ", given.consumer(), " of ", given.consumers()));
  }
  if (!given.share().empty()) {
    words.Add(absl::StrCat("shared as ", given.share()));
  }
  if (given.readers() > 1) {
    words.Add(absl::StrCat("reader ", given.reader(), " of ", given.readers()));
  }
  return words.Join();
}

std::string TextOf(const Tensor& tensor) {
  absl::StatusOr<Column> column = FromProto(tensor);
  if (!column.ok()) return "?";
  if (column->dtype() == penstock::DType::kString) {
    if (column->rank() == 0) return Quoted(tensor.strings(0));
    std::vector<std::string> items;
    for (int i = 0; i < std::min(tensor.strings_size(), kMaxItems); ++i) {
      items.push_back(Quoted(tensor.strings(i)));
    }
    if (tensor.strings_size() > kMaxItems) {
      items.push_back(absl::StrCat("… ", tensor.strings_size(), " in all"));
    }
    return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
  }
  if (column->rank() == 0 &&
      (IsInteger(column->dtype()) || IsFloat(column->dtype()))) {
    absl::StatusOr<Number> number = NumberOf(tensor);
    if (!number.ok()) return "?";
    return number->is_integer ? absl::StrCat(number->integer)
                              : absl::StrCat(number->number);
  }
  penstock::TensorSpec spec;
  spec.dtype = column->dtype();
  spec.shape = penstock::PartialShape(column->shape());
  return spec.ToString();
}

std::string TextOf(const Value& value) {
  switch (value.kind_case()) {
    case Value::kConstant:
      return TextOf(value.constant());
    case Value::kBound:
      return absl::StrCat("bound[", value.bound(), "]");
    case Value::KIND_NOT_SET:
      return "?";
  }
  return "?";
}

std::string TextOf(const google::protobuf::RepeatedField<int64_t>& numbers,
                   int most = kMaxItems) {
  std::vector<std::string> items;
  for (int i = 0; i < std::min(numbers.size(), most); ++i) {
    items.push_back(absl::StrCat(numbers[i]));
  }
  if (numbers.size() > most) {
    items.push_back(absl::StrCat("… ", numbers.size(), " in all"));
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

std::string NameOf(const Function& function) {
  return function.name().empty() ? "<function>" : function.name();
}

template <typename Op>
std::string ParallelismOf(const Op& op) {
  return op.has_parallelism() ? absl::StrCat("parallelism=", op.parallelism())
                              : "";
}

template <typename Op>
std::string OrderOf(const Op& op) {
  return op.has_deterministic() && !op.deterministic() ? "any order" : "";
}

template <typename Op>
std::string SeedOf(const Op& op) {
  return op.has_seed() ? absl::StrCat("seed=", op.seed()) : "";
}

template <typename Op>
std::string CountOf(const Op& op) {
  return op.has_count() ? absl::StrCat("count=", TextOf(op.count())) : "";
}

std::string OptionsText(const Options& options) {
  Words words;
  if (options.has_deterministic()) {
    words.Set("deterministic", options.deterministic() ? "True" : "False");
  }
  if (options.has_run_ahead()) {
    words.Set("run_ahead", absl::StrCat(options.run_ahead()));
  }
  if (options.has_memory_budget_bytes()) {
    words.Set("memory_budget_bytes",
              absl::StrCat(options.memory_budget_bytes()));
  }
  if (options.has_max_element_bytes()) {
    words.Set("max_element_bytes", absl::StrCat(options.max_element_bytes()));
  }
  if (options.has_name()) words.Set("name", Quoted(options.name()));
  if (options.has_rewrite()) {
    words.Set("rewrite", options.rewrite() ? "True" : "False");
  }
  if (options.has_autotune()) {
    words.Set("autotune", options.autotune() ? "True" : "False");
  }
  if (options.has_kept_directory()) {
    words.Set("kept_directory", Quoted(options.kept_directory()));
  }
  return words.Join();
}

}  // namespace

// How map(read_file) is written down.
bool ReadsWholeFiles(const Interleave& interleave) {
  const Plan& dataset = interleave.function().dataset();
  return dataset.nodes_size() == 1 && dataset.nodes(0).has_read_files() &&
         dataset.nodes(0).read_files().has_whole();
}

std::string OpName(const Node& node) {
  switch (node.op_case()) {
    case Node::kRows:
      return node.rows().kind().empty() ? "rows" : node.rows().kind();
    case Node::kValues:
      return node.values().slices() ? "from_tensor_slices" : "from_tensors";
    case Node::kGenerator:
      return "from_generator";
    case Node::kReadFiles:
      switch (node.read_files().format_case()) {
        case ReadFiles::kText:
          return "TextLineDataset";
        case ReadFiles::kTfRecord:
          return "TFRecordDataset";
        case ReadFiles::kFixedLength:
          return "FixedLengthRecordDataset";
        case ReadFiles::kWhole:
          return "whole_files";
        case ReadFiles::kTar:
          return "TarDataset";
        case ReadFiles::FORMAT_NOT_SET:
          return "read_files";
      }
      return "read_files";
    case Node::kInterleave:
      return ReadsWholeFiles(node.interleave()) ? "map" : "interleave";
    case Node::OP_NOT_SET:
      return "nothing";
    default:
      // The field's name is the method's.
      return Node::descriptor()->FindFieldByNumber(node.op_case())->name();
  }
}

std::string Detail(const Node& node) {
  Words words;
  switch (node.op_case()) {
    case Node::kRange: {
      const Range& op = node.range();
      const std::string start = TextOf(op.start());
      const std::string step = TextOf(op.step());
      if (start != "0" || step != "1") words.Add(start);
      words.Add(TextOf(op.stop()));
      if (step != "1") words.Add(step);
      if (op.dtype() != INT64 && IsDType(op.dtype())) {
        penstock::TensorSpec spec;
        spec.dtype = static_cast<penstock::DType>(op.dtype());
        words.Set("dtype", std::string(Name(spec.dtype)));
      }
      return words.Join();
    }
    case Node::kCounter:
      return words.Add(TextOf(node.counter().start()))
          .Add(TextOf(node.counter().step()))
          .Join();
    case Node::kRandom:
      return words.Add(SeedOf(node.random()))
          .Flag("rerandomize_each_iteration",
                node.random().rerandomize_each_iteration())
          .Join();
    case Node::kListFiles:
      return words.Add(TextOf(node.list_files().patterns()))
          .Flag("shuffle", node.list_files().shuffle())
          .Add(SeedOf(node.list_files()))
          .Join();
    case Node::kReadFiles:
      words.Add(TextOf(node.read_files().files()));
      if (node.read_files().compression() != ReadFiles::NONE) {
        words.Add(ReadFiles::Compression_Name(node.read_files().compression()));
      }
      if (node.read_files().has_fixed_length()) {
        words.Set("record_bytes",
                  TextOf(node.read_files().fixed_length().record_bytes()));
      }
      return words.Join();
    case Node::kMap:
      return words.Add(NameOf(node.map().function()))
          .Add(ParallelismOf(node.map()))
          .Add(OrderOf(node.map()))
          .Join();
    case Node::kFilter:
      return NameOf(node.filter().predicate());
    case Node::kTakeWhile:
      return NameOf(node.take_while().predicate());
    case Node::kFlatMap:
      return NameOf(node.flat_map().function());
    case Node::kInterleave:
      if (ReadsWholeFiles(node.interleave())) return "read_file";
      return words.Add(NameOf(node.interleave().function()))
          .Set("cycle_length", absl::StrCat(node.interleave().cycle_length()))
          .Set("block_length", absl::StrCat(node.interleave().block_length()))
          .Add(ParallelismOf(node.interleave()))
          .Add(OrderOf(node.interleave()))
          .Join();
    case Node::kBatch:
      return words.Set("size", TextOf(node.batch().size()))
          .Flag("drop_remainder", node.batch().drop_remainder())
          .Add(ParallelismOf(node.batch()))
          .Add(OrderOf(node.batch()))
          .Join();
    case Node::kPaddedBatch:
      return words.Set("size", TextOf(node.padded_batch().size()))
          .Flag("drop_remainder", node.padded_batch().drop_remainder())
          .Join();
    case Node::kRebatch:
      return words.Set("sizes", TextOf(node.rebatch().sizes()))
          .Flag("drop_remainder", node.rebatch().drop_remainder())
          .Join();
    case Node::kShuffle:
      return words
          .Add(node.shuffle().has_window() ? TextOf(node.shuffle().window())
                                           : "the whole input")
          .Add(SeedOf(node.shuffle()))
          .Flag("reshuffle_each_iteration",
                node.shuffle().reshuffle_each_iteration())
          .Join();
    case Node::kRepeat:
      return CountOf(node.repeat());
    case Node::kTake:
      return CountOf(node.take());
    case Node::kSkip:
      return CountOf(node.skip());
    case Node::kShard:
      if (node.shard().is_by_worker()) return "by worker";
      return words.Set("num_shards", TextOf(node.shard().num_shards()))
          .Set("index", TextOf(node.shard().index()))
          .Join();
    case Node::kEnumerate: {
      const std::string start = TextOf(node.enumerate().start());
      return start == "0" ? "" : absl::StrCat("start=", start);
    }
    case Node::kPrefetch:
      return node.prefetch().has_buffer_size()
                 ? absl::StrCat(node.prefetch().buffer_size())
                 : "";
    case Node::kScan:
      return NameOf(node.scan().function());
    case Node::kReduce:
      return NameOf(node.reduce().function());
    case Node::kCache:
      return node.cache().filename().empty() ? ""
                                             : Quoted(node.cache().filename());
    case Node::kWindow:
      return words.Set("size", TextOf(node.window().size()))
          .Set("shift", TextOf(node.window().shift()))
          .Set("stride", TextOf(node.window().stride()))
          .Flag("drop_remainder", node.window().drop_remainder())
          .Join();
    case Node::kGroupByWindow: {
      const GroupByWindow& op = node.group_by_window();
      return words.Add(NameOf(op.key()))
          .Add(NameOf(op.reduce()))
          .Set("window_size", op.has_window_size()
                                  ? TextOf(op.window_size())
                                  : NameOf(op.window_size_function()))
          .Join();
    }
    case Node::kBucketBySequenceLength: {
      const BucketBySequenceLength& op = node.bucket_by_sequence_length();
      return words.Add(NameOf(op.length()))
          .Set("boundaries", TextOf(op.boundaries(), kMaxBuckets))
          .Set("batch_sizes", TextOf(op.batch_sizes(), kMaxBuckets))
          .Add(op.has_max_tokens() ? BudgetOf(op) : "")
          .Flag("pad_to_boundary", op.pad_to_boundary())
          .Flag("no_padding", op.no_padding())
          .Flag("drop_remainder", op.drop_remainder())
          .Join();
    }
    case Node::kBatchByTokens: {
      const BatchByTokens& op = node.batch_by_tokens();
      words.Add(NameOf(op.length())).Add(BudgetOf(op));
      if (op.has_window()) words.Set("window", absl::StrCat(op.window()));
      if (op.has_max_rows()) words.Set("max_rows", absl::StrCat(op.max_rows()));
      return words.Flag("drop_remainder", op.drop_remainder()).Join();
    }
    case Node::kSampleFromDatasets: {
      const SampleFromDatasets& op = node.sample_from_datasets();
      if (op.weights_size() > 0) {
        words.Set("weights", absl::StrCat("[", op.weights_size(), "]"));
      }
      return words.Add(SeedOf(op))
          .Flag("stop_on_empty", op.stop_on_empty())
          .Join();
    }
    case Node::kChooseFromDatasets:
      return words
          .Flag("stop_on_empty", node.choose_from_datasets().stop_on_empty())
          .Join();
    case Node::kAssertCardinality:
      return ToString(node.assert_cardinality().expected());
    case Node::kRaggedBatch:
      return words.Set("size", TextOf(node.ragged_batch().size()))
          .Flag("drop_remainder", node.ragged_batch().drop_remainder())
          .Join();
    case Node::kSparseBatch:
      return words.Set("size", TextOf(node.sparse_batch().size())).Join();
    case Node::kPack:
      return words.Set("length", absl::StrCat(node.pack().length()))
          .Flag("split", node.pack().split())
          .Set("open_rows", absl::StrCat(node.pack().open_rows()))
          .Flag("drop_remainder", node.pack().drop_remainder())
          .Join();
    case Node::kIgnoreErrors:
      return words.Flag("log_warning", node.ignore_errors().log_warning())
          .Join();
    case Node::kWithOptions:
      return OptionsText(node.with_options().options());
    case Node::kRows:
    case Node::kValues:
    case Node::kGenerator:
    case Node::kZip:
    case Node::kConcatenate:
    case Node::kUnbatch:
    case Node::kReceived:
      return ReceivedText(node.received());
    case Node::kNestedRows:
    case Node::kUnique:
    case Node::OP_NOT_SET:
      return "";
  }
  return "";
}

}  // namespace penstock::plan
