#include "penstock/engine/contract_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/plan/plan_testing.h"
#include "penstock/plan/print.h"

namespace penstock::engine_testing {
namespace {

using Pipeline = std::shared_ptr<const engine::Pipeline>;

class Contract final {
 public:
  Contract(const plan::Plan& plan, const ContractOptions& options)
      : plan_(plan),
        options_(options),
        engine_(options.settings),
        pipeline_(BuildOrDie(plan)) {
    options_.set_up(engine_);
    want_ = Reader(engine_, pipeline_).Read(options_.max_rows);
    is_whole_ = static_cast<int64_t>(want_.size()) < options_.max_rows;
  }

  void CheckDemand() {
    for (const std::vector<int64_t>& demands :
         std::vector<std::vector<int64_t>>{
             {1}, {2}, {3}, {1000}, {1, 50, 2, 7}}) {
      Reader reader(engine_, pipeline_);
      Rows rows;
      for (size_t i = 0; rows.size() < want_.size() + 1; ++i) {
        const int64_t demand = demands[i % demands.size()];
        const int64_t left = options_.max_rows - rows.size();
        if (left == 0) break;
        absl::StatusOr<engine::Pull> pull = reader.Next(std::min(demand, left));
        ASSERT_TRUE(pull.ok()) << pull.status();
        if (pull->is_end()) break;
        ASSERT_GE(pull->chunk.rows, 1);
        ASSERT_LE(pull->chunk.rows, demand) << "more rows than asked for";
        for (std::string& row : ToText(pull->chunk)) rows.push_back(row);
      }
      ExpectSame(rows, want_, absl::StrCat("demands ", demands[0], ", …"));
    }
  }

  void CheckEnd() {
    if (!is_whole_) return;
    Reader reader(engine_, pipeline_);
    reader.Read(options_.max_rows);
    for (int i = 0; i < 3; ++i) {
      absl::StatusOr<engine::Pull> pull = reader.Next(5);
      ASSERT_TRUE(pull.ok()) << pull.status();
      EXPECT_TRUE(pull->is_end()) << "something after the end";
    }
    Reader resumed = Reader::Resume(engine_, pipeline_, reader.Save());
    EXPECT_TRUE(resumed.Next(5)->is_end()) << "something after a saved end";
  }

  void CheckCounters() {
    // Rows that are given again are not the node's.
    if (options_.settings.keep_bytes > 0) return;
    std::shared_ptr<const engine::Run> run;
    Rows rows;
    {
      Reader reader(engine_, pipeline_);
      run = reader.run();
      rows = reader.Read(options_.max_rows);
    }
    int64_t errors = 0;
    for (const std::string& row : rows) errors += row[0] == '!' ? 1 : 0;
    const std::string name = plan::NodeName(plan_, plan_.nodes_size() - 1);
    for (const engine::OpInfo& info : pipeline_->ops()) {
      if (info.name != name) continue;
      EXPECT_EQ(run->stats[info.id].rows.load(), rows.size()) << name;
      EXPECT_EQ(static_cast<int64_t>(run->stats[info.id].errors.load()), errors)
          << name;
    }
  }

  void CheckState() {
    for (int64_t demand : {1, 3, 17}) {
      Reader reader(engine_, pipeline_);
      Rows given;
      for (;;) {
        const std::string state = reader.Save();
        CheckRest(given, state, absl::StrCat(" by ", demand));
        const int64_t left = options_.max_rows - given.size();
        if (left == 0) break;
        const Rows rows = reader.Read(std::min(demand, left), demand);
        if (rows.empty()) break;
        given.insert(given.end(), rows.begin(), rows.end());
        if (HasFailure()) break;
      }
    }
  }

  void CheckRepeat() {
    if (!is_whole_) return;
    const plan::Plan twice = plan_testing::Repeat(plan_, 2);
    Rows want = want_;
    want.insert(want.end(), want_.begin(), want_.end());
    Reader reader(engine_, twice);
    Rows rows = reader.Drain({7});
    if (options_.repeats_itself) {
      ExpectSame(rows, want, "repeat(2)");
    } else {
      EXPECT_EQ(rows.size(), want.size()) << "repeat(2)";
    }
  }

  void CheckIterators() {
    Reader first(engine_, pipeline_);
    Reader second(engine_, pipeline_);
    Rows of_first;
    Rows of_second;
    while (static_cast<int64_t>(of_first.size()) < options_.max_rows) {
      const int64_t left = options_.max_rows - of_first.size();
      const Rows a = first.Read(std::min<int64_t>(left, 2));
      const Rows b = second.Read(std::min<int64_t>(left, 2));
      of_first.insert(of_first.end(), a.begin(), a.end());
      of_second.insert(of_second.end(), b.begin(), b.end());
      if (a.empty() && b.empty()) break;
    }
    ExpectSame(of_first, want_, "the first of two iterators");
    ExpectSame(of_second, want_, "the second of two iterators");
  }

  // Under the sanitizers: whatever still runs must own what it touches.
  void CheckCancel() {
    for (int pulls = 0; pulls < 6; ++pulls) {
      std::string state;
      {
        Reader reader(engine_, BuildOrDie(plan_));
        for (int i = 0; i < pulls; ++i) {
          ASSERT_TRUE(reader.Try(pulls % 2 == 0 ? 1 : 100).ok());
        }
        state = reader.Save();
      }
      Reader resumed = Reader::Resume(engine_, BuildOrDie(plan_), state);
      ASSERT_TRUE(resumed.Try(5).ok());
    }
    // The engine itself goes right after its iterators.
    TestEngine other(options_.settings);
    options_.set_up(other);
    Reader reader(other, BuildOrDie(plan_));
    ASSERT_TRUE(reader.Try(100).ok());
  }

 private:
  static bool HasFailure() {
    return testing::Test::HasFatalFailure() || testing::Test::HasFailure();
  }

  void ExpectSame(Rows got, Rows want, const std::string& where) const {
    if (!options_.is_ordered && is_whole_) {
      std::sort(got.begin(), got.end());
      std::sort(want.begin(), want.end());
    }
    if (!options_.is_ordered && !is_whole_) return;
    EXPECT_EQ(got, want) << where;
  }

  void CheckRest(const Rows& given, const std::string& state,
                 const std::string& how) {
    const std::string where =
        absl::StrCat("saved after row ", given.size(), how);
    EXPECT_LE(state.size(), options_.max_state_bytes) << where;
    const int64_t left = options_.max_rows - given.size();

    Reader resumed = Reader::Resume(engine_, pipeline_, state);
    const std::string again = resumed.Save();
    ExpectSame(Joined(given, resumed.Read(left)), want_, where);
    Reader twice = Reader::Resume(engine_, pipeline_, again);
    ExpectSame(Joined(given, twice.Read(left, 2)), want_,
               where + ", and again at once");

    const int64_t skip = std::min<int64_t>(2, want_.size() - given.size());
    if (!options_.is_ordered || skip <= 0) return;
    Reader skipped = Reader::Resume(engine_, pipeline_, state, skip);
    Rows with_skipped = given;
    for (int64_t i = 0; i < skip; ++i) {
      with_skipped.push_back(want_[given.size() + i]);
    }
    const std::string after = skipped.Save();
    ExpectSame(Joined(with_skipped, skipped.Read(left - skip)), want_,
               where + ", rows skipped");
    Reader last = Reader::Resume(engine_, pipeline_, after);
    ExpectSame(Joined(with_skipped, last.Read(left - skip)), want_,
               where + ", rows skipped, and saved");
  }

  static Rows Joined(Rows first, const Rows& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  const plan::Plan plan_;
  const ContractOptions options_;
  TestEngine engine_;
  const Pipeline pipeline_;
  Rows want_;
  bool is_whole_ = false;
};

}  // namespace

void CheckContract(const plan::Plan& plan, const ContractOptions& options) {
  Contract contract(plan, options);
  contract.CheckDemand();
  contract.CheckEnd();
  contract.CheckCounters();
  contract.CheckState();
  contract.CheckRepeat();
  contract.CheckIterators();
  contract.CheckCancel();
}

}  // namespace penstock::engine_testing
