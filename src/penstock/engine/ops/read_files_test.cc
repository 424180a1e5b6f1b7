#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/engine/contract_testing.h"
#include "penstock/engine/samples_testing.h"
#include "penstock/io/fake_files.h"
#include "penstock/io/tfrecord_writer.h"
#include "penstock/plan/plan_testing.h"

namespace penstock::engine_testing {
namespace {

using namespace plan_testing;  // NOLINT: the language of these tests

using testing::ElementsAre;
using testing::SizeIs;

enum class Format { kText, kTfRecord, kFixed };

plan::Plan Read(
    Format format, const std::vector<std::string>& files,
    plan::ReadFiles::Compression compression = plan::ReadFiles::NONE) {
  Node node;
  plan::ReadFiles& op = *node.mutable_read_files();
  *op.mutable_files() = Constant(Texts(files));
  op.set_compression(compression);
  op.set_buffer_bytes(64);  // records cross the edges of blocks
  switch (format) {
    case Format::kText:
      op.mutable_text();
      break;
    case Format::kTfRecord:
      op.mutable_tf_record();
      break;
    case Format::kFixed:
      *op.mutable_fixed_length()->mutable_record_bytes() = Constant(int64_t{4});
      *op.mutable_fixed_length()->mutable_header_bytes() = Constant(int64_t{2});
      *op.mutable_fixed_length()->mutable_footer_bytes() = Constant(int64_t{1});
      break;
  }
  return AppendOrDie({}, std::move(node));
}

// Files a, b and c of each format, with 10 records each.
class ReadFilesTest : public testing::Test {
 protected:
  ReadFilesTest() {
    for (const std::string name : {"a", "b", "c"}) {
      std::string text;
      std::string fixed = "HH";
      auto writer = io::CreateTfRecordWriter(files_, name + ".tfrecord");
      auto zipped = io::CreateTfRecordWriter(files_, name + ".gz",
                                             io::Compression::kGzip);
      for (int i = 0; i < 10; ++i) {
        const std::string record = Record(name, i);
        text += record + "\n";
        fixed += name + "=0" + std::to_string(i);
        EXPECT_TRUE((*writer)->Write(record).ok());
        EXPECT_TRUE((*zipped)->Write(record).ok());
      }
      EXPECT_TRUE((*writer)->Close().ok());
      EXPECT_TRUE((*zipped)->Close().ok());
      files_.contents[name + ".txt"] = text;
      files_.contents[name + ".fixed"] = fixed + "F";
    }
  }

  static std::string Record(const std::string& name, int i) {
    return name + std::to_string(i) + std::string(i * 3, '-');
  }

  static Rows Records(const std::vector<std::string>& names) {
    Rows rows;
    for (const std::string& name : names) {
      for (int i = 0; i < 10; ++i)
        rows.push_back("\"" + Record(name, i) + "\"");
    }
    return rows;
  }

  Rows Drained(const plan::Plan& plan) {
    TestEngine engine({.files = &files_});
    return Reader(engine, plan).Drain();
  }

  ContractOptions Options() {
    return {.max_rows = 100, .settings = {.files = &files_}};
  }

  io::FakeFiles files_;
};

TEST_F(ReadFilesTest, ReadsFileAfterFile) {
  const Rows want = Records({"a", "b", "c"});
  EXPECT_EQ(Drained(Read(Format::kText, {"a.txt", "b.txt", "c.txt"})), want);
  EXPECT_EQ(Drained(Read(Format::kTfRecord,
                         {"a.tfrecord", "b.tfrecord", "c.tfrecord"})),
            want);
  EXPECT_EQ(Drained(Read(Format::kTfRecord, {"a.gz", "b.gz", "c.gz"},
                         plan::ReadFiles::GZIP)),
            want);
  const Rows fixed = Drained(Read(Format::kFixed, {"a.fixed", "b.fixed"}));
  EXPECT_THAT(fixed, SizeIs(20));
  EXPECT_EQ(fixed[0], "\"a=00\"");
  EXPECT_EQ(fixed[19], "\"b=09\"");
}

TEST_F(ReadFilesTest, OpeningHoldsNoThreadThatComputes) {
  const auto gate = std::make_shared<io::Gate>();
  files_.settings.open_gate = gate;
  TestEngine engine({.files = &files_});
  Reader reader(engine, Read(Format::kText, {"a.txt"}));
  EXPECT_TRUE(reader.Try(1)->is_blocked());
  gate->AwaitArrivals(1);
  EXPECT_TRUE(reader.Try(1)->is_blocked());
  gate->Open();
  EXPECT_EQ(reader.Drain(), Records({"a"}));
}

TEST_F(ReadFilesTest, FilesAreOpenedWhileOthersAreRead) {
  const auto gate = std::make_shared<io::Gate>();
  gate->Open();
  files_.settings.open_gate = gate;
  TestEngine engine({.files = &files_});
  Reader reader(engine, Read(Format::kText, {"a.txt", "b.txt", "c.txt"}));
  EXPECT_THAT(reader.Read(1, 1), SizeIs(1));
  gate->AwaitArrivals(2);  // b, of which nobody has asked for a row
  Rows want = Records({"a", "b", "c"});
  want.erase(want.begin());
  EXPECT_EQ(reader.Drain(), want);
  EXPECT_EQ(reader.run()->stats[0].io->most_sources, 1);
}

TEST_F(ReadFilesTest, AReaderMayGoWhileItsFileIsOpened) {
  const auto gate = std::make_shared<io::Gate>();
  files_.settings.open_gate = gate;
  TestEngine engine({.files = &files_});
  {
    Reader reader(engine, Read(Format::kText, {"a.txt"}));
    EXPECT_TRUE(reader.Try(1)->is_blocked());
    gate->AwaitArrivals(1);
  }
  gate->Open();
}

TEST_F(ReadFilesTest, MissingFileIsOneError) {
  Rows want = Records({"a"});
  want.emplace_back("!NOT_FOUND");
  for (const std::string& row : Records({"c"})) want.push_back(row);
  EXPECT_EQ(Drained(Read(Format::kText, {"a.txt", "none.txt", "c.txt"})), want);
}

TEST_F(ReadFilesTest, TruncatedFileIsOneErrorAtItsEnd) {
  std::string& file = files_.contents["b.tfrecord"];
  file.resize(file.size() - 3);
  const Rows rows = Drained(
      Read(Format::kTfRecord, {"a.tfrecord", "b.tfrecord", "c.tfrecord"}));
  ASSERT_THAT(rows, SizeIs(30));
  EXPECT_EQ(rows[19], "!DATA_LOSS");
  EXPECT_EQ(rows[20], "\"c0\"");
}

TEST_F(ReadFilesTest, BrokenRecordIsOneError) {
  std::string& file = files_.contents["b.tfrecord"];
  file[12] ^= 1;  // the first record's data
  const Rows rows =
      Drained(Read(Format::kTfRecord, {"b.tfrecord", "c.tfrecord"}));
  ASSERT_THAT(rows, SizeIs(20));
  EXPECT_EQ(rows[0], "!DATA_LOSS");
  EXPECT_EQ(rows[1], "\"b1---\"");
}

TEST_F(ReadFilesTest, DirectoryIsOneError) {
  const std::string dir = testing::TempDir();
  EXPECT_THAT(Drain(Read(Format::kText, {dir})),
              ElementsAre("!FAILED_PRECONDITION"));
}

TEST_F(ReadFilesTest, NoFilesGiveNothing) {
  EXPECT_THAT(Drained(Read(Format::kText, {})), SizeIs(0));
  files_.contents["empty"] = "";
  EXPECT_THAT(Drained(Read(Format::kText, {"empty", "empty"})), SizeIs(0));
}

TEST_F(ReadFilesTest, ContractHolds) {
  CheckContract(Read(Format::kText, {"a.txt", "none", "b.txt"}), Options());
  files_.contents["b.tfrecord"][12] ^= 1;
  CheckContract(Read(Format::kTfRecord, {"a.tfrecord", "b.tfrecord"}),
                Options());
  CheckContract(
      Read(Format::kTfRecord, {"a.gz", "b.gz"}, plan::ReadFiles::GZIP),
      Options());
  CheckContract(Read(Format::kFixed, {"a.fixed", "b.fixed"}), Options());
}

TEST_F(ReadFilesTest, ContractHoldsWhenStorageIsSlow) {
  files_.settings.is_cached = false;
  CheckContract(Read(Format::kText, {"a.txt", "none", "b.txt"}), Options());
  CheckContract(
      Read(Format::kTfRecord, {"a.gz", "b.gz"}, plan::ReadFiles::GZIP),
      Options());
  FunctionBuilder f;
  const auto file = f.Arg(0);
  Node node;
  *node.mutable_read_files()->mutable_files() = Bound(0);
  node.mutable_read_files()->mutable_text();
  const Function open =
      f.ReturnDataset(AppendOrDie({}, node, {LeafOf(plan::STRING)}), {file});
  const plan::Plan names = Strings({"a.txt", "b.txt", "none", "c.txt"});
  CheckContract(Interleave(names, open, 2, 3), Options());
  CheckContract(Interleave(names, open, 2, 3, 2), Options());
  CheckContract(Prefetch(Shuffle(FlatMap(names, open), 9, 1, false), 4),
                Options());
}

}  // namespace
}  // namespace penstock::engine_testing
