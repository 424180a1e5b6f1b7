// Rewriting shows nowhere: plans of all sorts, before and after each pass.
#include "penstock/plan/rewrite/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "penstock/data/chunk_testing.h"
#include "penstock/engine/python_testing.h"
#include "penstock/engine/reader_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"
#include "penstock/plan/rewrite/draft.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests
using google::protobuf::util::MessageDifferencer;
using plan::RewriteOptions;
using plan::Rewritten;

// What elements of a plan are made of; tells which operators fit.
enum class Kind { kNumber, kPair, kBatch, kBatchOfPairs, kImage, kLabelled };

struct Made {
  Plan plan;
  Kind kind = Kind::kNumber;
};

Function OfPair(int which) {
  FunctionBuilder f("of_pair");
  const auto x = f.Arg(0);
  const auto y = f.Arg(1);
  switch (which) {
    case 0:
      return f.ReturnTuple({y, x});
    case 1:
      return f.ReturnTuple({x, f.Call("multiply", {y, f.Int(3)})});
    case 2:
      return f.ReturnTuple({f.Call("add", {x, y}), y});
    case 3:
      return f.Return(x);
    case 4:
      return f.Return(f.Call("subtract", {y, x}));
    case 5:  // reads one, and may fail where the other is 1 of 7
      return f.ReturnTuple(
          {x, f.Call("take", {f.Constant(Vector({1, 2, 3, 4, 5, 6})),
                              f.Call("mod", {y, f.Int(7)})})});
    default:
      return f.ReturnTuple({x, f.Call("random_int", {f.Constant(Vector({})),
                                                     f.Int(0), f.Int(1000)})});
  }
}

Function OnFirst(int64_t divisor) {
  FunctionBuilder f("on_first");
  return f.Return(f.Call(
      "not_equal", {f.Call("mod", {f.Arg(0), f.Int(divisor)}), f.Int(1)}));
}

Function OnSecond(int64_t divisor) {
  FunctionBuilder f("on_second");
  f.Arg(0);  // as recorded from Python: a step for each argument
  return f.Return(
      f.Call("equal", {f.Call("mod", {f.Arg(1), f.Int(divisor)}), f.Int(0)}));
}

// x -> (x, x * 5, x + 7): more than most will read.
Function Widen() {
  FunctionBuilder f("widen");
  const auto x = f.Arg(0);
  return f.ReturnTuple({x, f.Call("multiply", {x, f.Int(5)})});
}

// x -> 16 small items, of which 1 in 11 is an error.
Function ToImage(bool may_fail) {
  FunctionBuilder f("to_image");
  const auto x = f.Arg(0);
  auto row = x;
  if (may_fail) {
    const auto is_bad =
        f.Call("equal", {f.Call("mod", {x, f.Int(11)}), f.Int(3)});
    const auto index = f.Call("multiply", {is_bad, f.Int(5)});
    row = f.Call("add", {x, f.Call("take", {f.Constant(Vector({0})), index})});
  }
  std::vector<int64_t> many(16, 1);
  plan::Attr small;
  small.set_dtype(plan::UINT8);
  plan::Attr large;
  large.set_dtype(plan::FLOAT32);
  const auto bytes =
      f.Call("cast", {f.Call("multiply", {row, f.Constant(Vector(many))})},
             {{"dtype", small}});
  const auto floats = f.Call("cast", {bytes}, {{"dtype", large}});
  return f.Return(f.Call("true_divide", {floats, f.Int(255)}));
}

// x -> (a label, 100 items): the label of 1 in 7 is an error, if it may fail.
Function ToLabelled(bool may_fail) {
  FunctionBuilder f("to_labelled");
  const auto x = f.Arg(0);
  const auto digit = f.Call("mod", {x, f.Int(7)});
  const auto label =
      may_fail ? f.Call("take", {f.Constant(Vector({9, 4, 7, 1, 2, 8})), digit})
               : f.Call("add", {digit, f.Int(1)});
  const std::vector<int64_t> many(100, 3);
  return f.ReturnTuple(
      {label, f.Call("multiply", {x, f.Constant(Vector(many))})});
}

Function ImageSum() {
  FunctionBuilder f("image_sum");
  plan::Attr whole;
  whole.set_dtype(plan::INT64);
  const auto sum = f.Call("sum", {f.Arg(0)});
  return f.Return(f.Call("cast", {f.Call("multiply", {sum, f.Int(255)})},
                         {{"dtype", whole}}));
}

Function Elementwise(Kind kind) {
  FunctionBuilder f("elementwise");
  const auto x = f.Call("add", {f.Arg(0), f.Int(2)});
  if (kind != Kind::kBatchOfPairs) return f.Return(x);
  return f.ReturnTuple({x, f.Call("maximum", {x, f.Arg(1)})});
}

// A dataset for each number, with something to rewrite in it.
Function ToInner(bool is_random) {
  FunctionBuilder f("inner");
  const auto stop = f.Call("mod", {f.Arg(0), f.Int(5)});
  Plan inside = RangeTo(Bound(0), {LeafOf(plan::INT64)});
  inside = Skip(Map(Map(inside, AddConstant(1)), MultiplyBy(2)), 0);
  if (is_random) inside = Shuffle(inside, 3);
  inside = Filter(Map(inside, Widen()), OnFirst(4));
  return f.ReturnDataset(Map(inside, OfPair(is_random ? 6 : 2)), {stop});
}

// What draws below a cache shows how far somebody read ahead before its reader
// stopped: such plans have no rows to compare.
bool Draws(const Plan& plan) {
  return std::any_of(plan.nodes().begin(), plan.nodes().end(),
                     [](const plan::Node& node) {
                       return (node.has_instance() && !node.has_cache()) ||
                              node.has_interleave();
                     });
}

class Generator final {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Made Make() {
    Made made = Source();
    const int steps = 2 + Below(8);
    for (int i = 0; i < steps; ++i) made = Step(std::move(made));
    int line = 0;
    for (plan::Node& node : *made.plan.mutable_nodes()) {
      node.mutable_made_at()->set_file("user.py");
      node.mutable_made_at()->set_line(++line);
    }
    return made;
  }

  // Sizes as if they had been measured.
  RewriteOptions Options(const Plan& plan) {
    RewriteOptions options;
    if (Below(2) == 0) return options;
    for (int i = 0; i < plan.nodes_size(); ++i) {
      options.measured[plan::NodeName(plan, i)] = {
          static_cast<double>(1 + Below(200)),
          static_cast<double>(1 + Below(1000))};
    }
    return options;
  }

  int Below(int limit) { return static_cast<int>(random_() % limit); }

 private:
  std::optional<uint64_t> Seed() {
    if (Below(2) == 0) return std::nullopt;
    return Below(100);
  }

  Made Source() {
    switch (Below(4)) {
      case 0:
        return {Ints({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}), Kind::kNumber};
      case 1:
        return {Enumerate(Range(7, 30)), Kind::kPair};
      case 2:
        return {Take(Random(Seed()), 14), Kind::kNumber};
      default:
        return {Range(10 + Below(30)), Kind::kNumber};
    }
  }

  Made Step(Made made) {
    // Half of the steps fit any element.
    if (Below(2) == 0) return {Anything(std::move(made.plan)), made.kind};
    switch (made.kind) {
      case Kind::kNumber:
        return OfNumbers(std::move(made.plan));
      case Kind::kPair:
        return OfPairs(std::move(made.plan));
      case Kind::kImage:
        if (Below(2) == 0) return {Map(std::move(made.plan), ImageSum())};
        return {Shuffle(std::move(made.plan), 1 + Below(9), Seed()),
                Kind::kImage};
      case Kind::kLabelled:
        if (Below(4) == 0) return {Map(std::move(made.plan), OfPair(3))};
        return {Filter(std::move(made.plan), OnFirst(2 + Below(4))),
                Kind::kLabelled};
      default:
        if (Below(3) == 0) {
          return {Map(std::move(made.plan), Elementwise(made.kind)), made.kind};
        }
        return {Unbatch(std::move(made.plan)),
                made.kind == Kind::kBatch ? Kind::kNumber : Kind::kPair};
    }
  }

  Plan Anything(Plan plan) {
    switch (Below(13)) {
      case 0:
        return Shuffle(std::move(plan), 1 + Below(9), Seed(), Below(3) > 0);
      case 1:
        return Shuffle(std::move(plan), std::nullopt, Seed());
      case 2:
        return Repeat(std::move(plan), Below(4) == 0 ? 2 : 1);
      case 3:
        return Below(2) == 0 ? Take(std::move(plan), std::nullopt)
                             : Take(std::move(plan), 15 + Below(40));
      case 4:
        return Skip(std::move(plan), Below(2) * Below(4));
      case 5:
        return Draws(plan) ? plan : Cache(std::move(plan));
      case 6:
        return Below(2) == 0 ? Prefetch(std::move(plan))
                             : Prefetch(std::move(plan), Below(4));
      case 7:
        return Prefetch(Prefetch(std::move(plan), 2));
      case 8:
        return IgnoreErrors(std::move(plan));
      case 9:
        return Shard(std::move(plan), 1 + Below(2), 0);
      case 10: {
        Plan other = Take(plan, Below(2) * 3);
        return Below(2) == 0 ? Concatenate(std::move(plan), std::move(other))
                             : Concatenate(std::move(other), std::move(plan));
      }
      case 11: {
        plan::Options options;
        options.set_name("named");
        return WithOptions(std::move(plan), options);
      }
      default:
        return plan;
    }
  }

  Made OfNumbers(Plan plan) {
    switch (Below(19)) {
      case 17:
      case 18: {
        plan = Map(std::move(plan), ToLabelled(Below(2) == 0));
        if (Below(3) == 0) plan = Shuffle(std::move(plan), 5, Seed());
        return {Filter(std::move(plan), OnFirst(2 + Below(4))),
                Kind::kLabelled};
      }
      case 15:
        return {Map(Map(std::move(plan), Mod(50)), PythonDouble())};
      case 16:
        return {Filter(Map(std::move(plan), Mod(50)), PythonIsEven())};
      case 0:
        return {Map(std::move(plan), AddConstant(Below(9)))};
      case 1:
        return {Map(std::move(plan), MultiplyBy(1 + Below(3)), 2)};
      case 2:
        return {Map(std::move(plan), Identity())};
      case 3:
        return {Map(std::move(plan), FailsWhere(5 + Below(4), Below(4)))};
      case 4:
        return {Map(std::move(plan), RandomNumber())};
      case 5:
        return {Filter(std::move(plan), IsMultipleOf(1 + Below(3)))};
      case 6:
        return {Filter(Filter(std::move(plan), IsLessThan(int64_t{1} << 50)),
                       IsMultipleOf(1 + Below(3)))};
      case 7:
        return {Map(std::move(plan), Widen()), Kind::kPair};
      case 8:
        return {Enumerate(std::move(plan)), Kind::kPair};
      case 9:
        return {Batch(std::move(plan), 1 + Below(5), Below(4) == 0),
                Kind::kBatch};
      case 10:
        return {Unbatch(Batch(std::move(plan), 1 + Below(5)))};
      case 11:
        return {Map(std::move(plan), ToImage(Below(2) == 0)), Kind::kImage};
      case 12:
        return {
            Interleave(Take(std::move(plan), 12), ToInner(Below(2) == 0), 2, 1),
            Kind::kPair};
      case 13: {
        Plan other = Map(plan, AddConstant(1));
        return {Zip({std::move(plan), std::move(other)}), Kind::kPair};
      }
      default:
        return {Unbatch(Map(Batch(std::move(plan), 1 + Below(5)),
                            Elementwise(Kind::kBatch)))};
    }
  }

  Made OfPairs(Plan plan) {
    const int which = Below(7);
    switch (Below(6)) {
      case 0:
      case 1:
        return {Map(std::move(plan), OfPair(which)),
                which == 3 || which == 4 ? Kind::kNumber : Kind::kPair};
      case 2:
        return {Filter(std::move(plan), OnFirst(2 + Below(4))), Kind::kPair};
      case 3:
        return {Filter(std::move(plan), OnSecond(1 + Below(3))), Kind::kPair};
      case 4:
        return {Map(Shuffle(std::move(plan), 5, Seed()), OfPair(3))};
      default:
        return {Batch(std::move(plan), 1 + Below(5)), Kind::kBatchOfPairs};
    }
  }

  std::mt19937 random_;
};

// Rows as text, of errors all that they say.
Rows Told(Reader& reader, int64_t limit = 5000) {
  Rows rows;
  while (static_cast<int64_t>(rows.size()) < limit) {
    absl::StatusOr<engine::Pull> pull = reader.Next(7);
    if (!pull.ok()) {
      rows.push_back(absl::StrCat("!!", pull.status().ToString()));
      return rows;
    }
    if (pull->is_end()) return rows;
    Rows text = ToText(pull->chunk);
    for (const RowError& error : pull->chunk.errors) {
      text[error.row] = error.status.ToString();
    }
    rows.insert(rows.end(), text.begin(), text.end());
  }
  return rows;
}

// Two epochs as the count of iterators has them, and one of a seed of its own.
std::vector<Rows> Runs(const Plan& plan) {
  TestEngine engine;
  const auto pipeline = BuildOrDie(plan);
  std::vector<Rows> runs;
  for (int i = 0; i < 2; ++i) {
    Reader reader(engine, pipeline, std::nullopt);
    runs.push_back(Told(reader));
  }
  TestEngine other;
  Reader reader(other, pipeline, 3, 77);
  runs.push_back(Told(reader));
  return runs;
}

void ExpectSameRoot(const Plan& before, const Plan& after) {
  const plan::Node& old_root = before.nodes(before.nodes_size() - 1);
  const plan::Node& new_root = after.nodes(after.nodes_size() - 1);
  EXPECT_TRUE(MessageDifferencer::Equals(old_root.output(), new_root.output()));
  EXPECT_TRUE(old_root.cardinality().has_unknown() ||
              MessageDifferencer::Equals(old_root.cardinality(),
                                         new_root.cardinality()));
}

// A state saved in the middle, read on by a fresh engine.
void ExpectResumes(const Plan& plan) {
  TestEngine engine;
  const auto pipeline = BuildOrDie(plan);
  Reader reader(engine, pipeline, 0);
  reader.Read(5, 2);
  const std::string state = reader.Save();
  const Rows rest = Told(reader);
  TestEngine fresh;
  Reader resumed = Reader::Resume(fresh, pipeline, state);
  EXPECT_EQ(Told(resumed), rest);
}

void ExpectUnseen(const Plan& plan, const RewriteOptions& options,
                  const std::vector<Rows>& before,
                  std::map<std::string, int>* applied) {
  absl::StatusOr<Rewritten> rewritten = plan::Rewrite(plan, options);
  ASSERT_TRUE(rewritten.ok()) << rewritten.status();
  for (const plan::Remark& remark : rewritten->applied) {
    ++(*applied)[remark.pass];
    if (absl::StrContains(remark.why, "the part")) ++(*applied)["part"];
  }
  if (rewritten->applied.empty()) {
    EXPECT_TRUE(MessageDifferencer::Equals(rewritten->plan, plan));
    return;
  }
  SCOPED_TRACE(absl::StrCat(
      plan::Print(plan), "became\n", plan::Print(rewritten->plan), "by ",
      rewritten->applied.size(),
      " changes, the first: ", plan::ToString(rewritten->applied[0])));
  ExpectSameRoot(plan, rewritten->plan);
  EXPECT_EQ(Runs(rewritten->plan), before);
  ExpectResumes(rewritten->plan);
  absl::StatusOr<Rewritten> again = plan::Rewrite(rewritten->plan, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->applied.empty())
      << "again: " << plan::ToString(again->applied[0]);
}

TEST(RewriteProperty, ShowsNowhere) {
  constexpr int kPlans = 600;
  std::map<std::string, int> applied;
  for (int seed = 0; seed < kPlans && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Generator generator(seed);
    const Plan plan = generator.Make().plan;
    const std::vector<Rows> before = Runs(plan);
    RewriteOptions options = generator.Options(plan);
    ExpectUnseen(plan, options, before, &applied);
    for (const plan::Pass& pass : plan::AllPasses()) {
      options.only = {pass.name};
      ExpectUnseen(plan, options, before, &applied);
    }
  }
  // Or the test would show nothing.
  for (const plan::Pass& pass : plan::AllPasses()) {
    RecordProperty(pass.name, applied[pass.name]);
    EXPECT_GE(applied[pass.name], 10) << pass.name;
  }
  EXPECT_GE(applied["part"], 10) << "of maps, by push_filter";
}

// Keys that rewriting pins are those that a run would give.
TEST(RewriteKeys, AreThoseOfARun) {
  plan::Node file_cache;
  file_cache.mutable_cache()->set_filename(testing::TempDir() + "/never");
  const Plan cached = AppendOrDie({Range(3)}, file_cache);
  const Plan all = Zip({Map(Prefetch(cached, 2), AddConstant(1)),
                        FlatMap(Interleave(Range(3), ToRange()), ToRange()),
                        WithOptions(Prefetch(Shuffle(Range(4), 2)), {}),
                        GroupByWindow(Range(9), Mod(3), 2)});
  const std::vector<uint64_t> keys = plan::KeysOf(all, 0);
  const auto pipeline = BuildOrDie(all);
  for (const engine::OpInfo& info : pipeline->ops()) {
    for (int i = 0; i < all.nodes_size(); ++i) {
      if (plan::NodeName(all, i) == info.name) {
        EXPECT_EQ(keys[i], info.key) << info.name;
      }
    }
  }
}

TEST(RewriteKeys, StatesAreThePlansOwn) {
  const Plan plan =
      Map(Map(Shuffle(Range(20), 5, 1), AddConstant(1)), MultiplyBy(2));
  absl::StatusOr<Rewritten> rewritten = plan::Rewrite(plan);
  ASSERT_TRUE(rewritten.ok());
  ASSERT_FALSE(rewritten->applied.empty());
  EXPECT_NE(BuildOrDie(plan)->fingerprint(),
            BuildOrDie(rewritten->plan)->fingerprint());
}

}  // namespace
}  // namespace penstock::engine_testing
