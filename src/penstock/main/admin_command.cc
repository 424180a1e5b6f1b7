#include "penstock/main/admin_command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <thread>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "penstock/base/status.h"
#include "penstock/dispatcher.grpc.pb.h"
#include "penstock/main/settings.h"
#include "penstock/service/rpc/channel.h"
#include "penstock/service/rpc/diagnose.h"
#include "penstock/service/rpc/status.h"
#include "penstock/service/windows/dispatcher_pages.h"
#include "penstock/service/windows/worker_pages.h"
#include "penstock/worker.grpc.pb.h"

namespace penstock {
namespace {

using service::State;

constexpr std::chrono::seconds kPatience(10);

struct Command {
  std::string_view name;
  std::string_view words;
  std::string_view summary;
  std::string_view example;
  size_t num_words;
};

constexpr Command kCommands[] = {
    {"state", "ADDRESS",
     "Shows what a dispatcher knows, or what a worker does.\n",
     "penstock state localhost:5050 --json", 1},
    {"jobs", "ADDRESS", "Lists the jobs of a dispatcher.\n",
     "penstock jobs localhost:5050", 1},
    {"workers", "ADDRESS", "Lists the workers of a dispatcher.\n",
     "penstock workers localhost:5050", 1},
    {"registered", "ADDRESS",
     "Lists the pipelines that stay with a dispatcher.\n",
     "penstock registered localhost:5050", 1},
    {"unregister", "ADDRESS ID",
     "Lets a registered pipeline go. ID may be a name of it.\n",
     "penstock unregister localhost:5050 imagenet", 2},
    {"top", "ADDRESS", "Shows jobs and workers, again and again.\n",
     "penstock top localhost:5050", 1},
    {"drain", "ADDRESS WORKER",
     "Has a worker give its work to others and end. WORKER is its address.\n",
     "penstock drain localhost:5050 10.0.0.7:5052", 2},
    {"cancel", "ADDRESS JOB", "Ends a job, whoever reads it.\n",
     "penstock cancel localhost:5050 train", 2},
};

const Command* FindCommand(const std::string& name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

Schema SchemaOf(const Command& command) {
  Schema schema{
      command.name,
      command.words,
      command.summary,
      command.example,
      "PENSTOCK_",
      "",
      {{"tls-ca", SettingKind::kText, "FILE", "",
        "whose certificate the dispatcher must show"},
       {"tls-cert", SettingKind::kText, "FILE", "", "the caller's certificate"},
       {"tls-key", SettingKind::kText, "FILE", "", "and the key of that"},
       {"token-file", SettingKind::kText, "FILE", "",
        "the word to show, for the role admin"}}};
  if (command.name == "top") {
    schema.settings.push_back({"interval-ms", SettingKind::kNumber, "N", "1000",
                               "how often it looks"});
    schema.settings.push_back({"times", SettingKind::kNumber, "N", "0",
                               "ends after so many looks; 0: never"});
  } else if (command.num_words == 1) {
    schema.settings.push_back(
        {"json", SettingKind::kSwitch, "", "", "for programs"});
  }
  return schema;
}

// Rows as columns, the first as their heads.
std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      absl::StrAppend(&line, row[i],
                      std::string(widths[i] - row[i].size(), ' '));
    }
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return out;
}

std::string AgeOf(int64_t ms) {
  if (ms < 10'000)
    return absl::StrFormat("%.1f s", static_cast<double>(ms) / 1e3);
  return absl::StrCat(ms / 1'000, " s");
}

std::string WordOf(service::Visitation visitation) {
  switch (visitation) {
    case service::EXACTLY_ONCE:
      return "exactly_once";
    case service::AT_MOST_ONCE:
      return "at_most_once";
    case service::EACH_WORKER:
      return "each_worker";
    case service::STATIC:
      return "static";
    default:
      return "?";
  }
}

int64_t PresentIn(const State::Epoch& epoch) {
  return std::ranges::count_if(epoch.consumers(), [](const auto& consumer) {
    return !consumer.has_left();
  });
}

std::string ProgressOf(const State::Epoch& epoch) {
  if (!epoch.has_bundles()) return absl::StrCat(epoch.done());
  return absl::StrCat(epoch.done(), "/", epoch.bundles());
}

// Repetitions of an epoch have names that no count reaches.
std::string EpochName(const State::Epoch& epoch) {
  const uint64_t number = epoch.epoch().epoch();
  return number >> 63 != 0 ? absl::StrFormat("%x", number)
                           : absl::StrCat(number);
}

using Done = std::map<std::tuple<std::string, uint64_t, uint64_t>, uint64_t>;

Done DoneOf(const State& state) {
  Done done;
  for (const auto& job : state.jobs()) {
    for (const auto& epoch : job.epochs()) {
      done[{job.job(), epoch.epoch().run(), epoch.epoch().epoch()}] =
          epoch.done();
    }
  }
  return done;
}

// Jobs as a table; with `before`, also how fast they are.
std::string Jobs(const State& state, const State* before, double seconds) {
  const Done done = before == nullptr ? Done() : DoneOf(*before);
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "EPOCH", "BUNDLES", "CONSUMERS", "VISITATION", "STATE"}};
  if (before != nullptr) rows[0].push_back("BUNDLES/S");
  for (const auto& job : state.jobs()) {
    for (const auto& epoch : job.epochs()) {
      std::vector<std::string>& row = rows.emplace_back();
      row = {job.job(),
             EpochName(epoch),
             ProgressOf(epoch),
             absl::StrCat(PresentIn(epoch), "/", job.slots()),
             WordOf(job.visitation()),
             epoch.failure().empty() ? "runs" : epoch.failure()};
      if (epoch.failure().empty() && epoch.has_bundles() &&
          epoch.done() >= epoch.bundles()) {
        row[5] = "done";
      }
      if (before == nullptr) continue;
      const auto it =
          done.find({job.job(), epoch.epoch().run(), epoch.epoch().epoch()});
      const uint64_t had = it == done.end() ? 0 : it->second;
      row.push_back(absl::StrFormat(
          "%.1f", static_cast<double>(epoch.done() - had) / seconds));
    }
  }
  return rows.size() == 1 ? "No jobs.\n" : Table(rows);
}

class Client final {
 public:
  static absl::StatusOr<Client> Connect(std::string address,
                                        const Settings& settings) {
    address = rpc::AddressOf(address);
    rpc::Credentials credentials;
    credentials.ca_file = settings.text("tls-ca");
    credentials.cert_file = settings.text("tls-cert");
    credentials.key_file = settings.text("tls-key");
    credentials.token_file = settings.text("token-file");
    credentials.role = "admin";
    PENSTOCK_ASSIGN_OR_RETURN(
        auto channel,
        rpc::MakeChannel(address, credentials, rpc::Carries::kBeats));
    return Client(address, credentials, channel);
  }

  template <typename Call, typename Request, typename Reply>
  absl::Status Do(Call call, const Request& request, Reply* reply) const {
    grpc::ClientContext context;
    rpc::Prepare(context, credentials_, kPatience);
    const grpc::Status status = (stub_.get()->*call)(&context, request, reply);
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::UnimplementedError(absl::StrCat(
          address_, " is no dispatcher\n  `penstock state` shows a worker, ",
          "too; for the rest give the dispatcher's address."));
    }
    return rpc::Diagnose(rpc::FromGrpc(status), address_, credentials_);
  }
  // Of a worker.
  absl::StatusOr<service::WorkerReport> GetReport() const {
    grpc::ClientContext context;
    rpc::Prepare(context, credentials_, kPatience);
    service::WorkerReport report;
    const grpc::Status status =
        worker_->GetState(&context, service::GetWorkerReportRequest(), &report);
    PENSTOCK_RETURN_IF_ERROR(
        rpc::Diagnose(rpc::FromGrpc(status), address_, credentials_));
    return report;
  }
  absl::StatusOr<State> GetState() const {
    State state;
    PENSTOCK_RETURN_IF_ERROR(Do(&service::Dispatcher::Stub::GetState,
                                service::GetStateRequest(), &state));
    return state;
  }

 private:
  Client(std::string address, rpc::Credentials credentials,
         const std::shared_ptr<grpc::Channel>& channel)
      : address_(std::move(address)),
        credentials_(std::move(credentials)),
        stub_(service::Dispatcher::NewStub(channel)),
        worker_(service::Worker::NewStub(channel)) {}

  std::string address_;
  rpc::Credentials credentials_;
  std::unique_ptr<service::Dispatcher::Stub> stub_;
  std::unique_ptr<service::Worker::Stub> worker_;
};

// Of jobs: what is padding, and what workers need not compute again.
std::string OffersText(const State& state) {
  std::string text;
  for (const State::Job& job : state.jobs()) {
    const service::Padding& padding = job.padding();
    if (padding.padded_items() > 0) {
      absl::StrAppendFormat(
          &text, "\n%s: %.0f %% of its batches is padding, in %d shapes\n",
          job.job(),
          100 * (1 - static_cast<double>(padding.items()) /
                         static_cast<double>(padding.padded_items())),
          padding.shapes());
    }
    for (const plan::Offer& offer : job.offers()) {
      absl::StrAppendFormat(
          &text,
          "\n%s: %s\n  spares %.0f %% of the workers' CPU, %.3g s of each "
          "pass%s, since %s\n",
          job.job(), offer.advice(), 100 * offer.cpu_share(),
          offer.cpu_seconds(),
          offer.has_bytes_high() ? absl::StrFormat("; keeps %.3g to %.3g MB",
                                                   offer.bytes_low() / 1e6,
                                                   offer.bytes_high() / 1e6)
                                 : "",
          offer.why());
    }
  }
  return text;
}

// How frames go to the hosts that read there.
std::string LinksText(const service::WorkerReport& report) {
  if (report.links_size() == 0) return "";
  std::vector<std::vector<std::string>> rows = {
      {"READER", "WAY", "FRAMES", "BYTES", "SENT", "NETWORK"}};
  for (const auto& link : report.links()) {
    const double rate = link.bytes_per_second();
    rows.push_back(
        {link.host(), link.way(), absl::StrCat(link.frames()),
         absl::StrCat(link.bytes()), absl::StrCat(link.sent_bytes()),
         rate == 0 ? "-" : absl::StrFormat("%.1f MB/s", rate / 1e6)});
  }
  return absl::StrCat("\n", Table(rows));
}

// What it computes once for several readers.
std::string SharedText(const service::WorkerReport& report) {
  const service::WorkerReport::Shared& shared = report.shared();
  if (shared.productions() == 0 && shared.computed() == 0) return "";
  return absl::StrCat(
      "\n",
      Table({{"SHARED", "BYTES", "COMPUTED", "AGAIN", "FRAMES", "REUSED",
              "SKIPPED", "EVICTED"},
             {absl::StrCat(shared.productions()), absl::StrCat(shared.bytes()),
              absl::StrCat(shared.computed()), absl::StrCat(shared.again()),
              absl::StrCat(shared.sent_frames()),
              absl::StrCat(shared.sent_again()),
              absl::StrCat(shared.skipped_items()),
              absl::StrCat(shared.evicted_frames())}}));
}

std::string ReportText(const service::WorkerReport& report) {
  return absl::StrCat(
      "penstock ", report.version(), ", worker ", report.address(),
      report.is_draining() ? ", drains" : "", "\n\n",
      Table({{"DISPATCHER", "HEARD", "HOLDS", "COMPUTES", "COMPUTED", "SENT"},
             {report.dispatcher(),
              report.has_heard_ms_ago()
                  ? absl::StrCat(AgeOf(report.heard_ms_ago()), " ago")
                  : "never",
              absl::StrCat(report.held()), absl::StrCat(report.running()),
              absl::StrCat(report.computed()),
              absl::StrCat(report.sent_bytes(), " bytes")}}),
      SharedText(report), LinksText(report), "\nReads files in: ",
      report.allowed_size() == 0 ? "all folders"
                                 : absl::StrJoin(report.allowed(), ", "),
      "\n");
}

absl::Status ShowWorker(const Client& client, bool is_json) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto report, client.GetReport());
  std::cout << (is_json ? windows::JsonOf(report) : ReportText(report));
  return absl::OkStatus();
}

absl::Status Show(const std::string& name, const Client& client, bool is_json) {
  absl::StatusOr<State> found = client.GetState();
  // A worker does not know a dispatcher's calls.
  if (absl::IsUnimplemented(found.status()) && name == "state") {
    return ShowWorker(client, is_json);
  }
  PENSTOCK_RETURN_IF_ERROR(found.status());
  State state = *std::move(found);
  if (name != "state" && name != "jobs") state.clear_jobs();
  if (name != "state" && name != "workers") state.clear_workers();
  if (name != "state" && name != "registered") state.clear_registered();
  if (is_json) {
    std::cout << windows::JsonOf(state);
    return absl::OkStatus();
  }
  if (name == "state") {
    std::cout << "penstock " << state.version() << ", term " << state.term()
              << (state.is_disk_full() ? ", its disk is full" : "") << "\n\n";
  }
  if (name == "jobs") std::cout << JobsTable(state);
  if (name == "workers") std::cout << WorkersTable(state);
  if (name == "registered") std::cout << RegisteredTable(state);
  if (name != "state") return absl::OkStatus();
  std::cout << JobsTable(state) << OffersText(state) << "\n"
            << WorkersTable(state);
  if (state.registered_size() > 0) std::cout << "\n" << RegisteredTable(state);
  return absl::OkStatus();
}

absl::Status Watch(const Client& client, const Settings& settings) {
  const auto interval = std::chrono::milliseconds(
      std::max<int64_t>(100, settings.number("interval-ms")));
  const int64_t times = settings.number("times");
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  PENSTOCK_ASSIGN_OR_RETURN(State before, client.GetState());
  for (int64_t i = 0; times == 0 || i < times; ++i) {
    std::this_thread::sleep_for(interval);
    PENSTOCK_ASSIGN_OR_RETURN(State now, client.GetState());
    if (is_terminal) std::cout << "\033[H\033[2J";
    std::cout << TopScreen(before, now,
                           std::chrono::duration<double>(interval).count())
              << std::flush;
    before = std::move(now);
  }
  return absl::OkStatus();
}

absl::Status Act(const std::string& name, const Client& client,
                 const Settings& settings) {
  using service::Dispatcher;
  if (name == "top") return Watch(client, settings);
  if (name == "drain") {
    service::DrainRequest request;
    service::DrainReply reply;
    request.set_address(settings.words()[1]);
    return client.Do(&Dispatcher::Stub::Drain, request, &reply);
  }
  if (name == "unregister") {
    service::UnregisterRequest request;
    service::UnregisterReply reply;
    request.set_plan(settings.words()[1]);
    return client.Do(&Dispatcher::Stub::Unregister, request, &reply);
  }
  if (name == "cancel") {
    service::CancelRequest request;
    service::CancelReply reply;
    request.set_job(settings.words()[1]);
    return client.Do(&Dispatcher::Stub::Cancel, request, &reply);
  }
  return Show(name, client, settings.is_on("json"));
}

}  // namespace

std::string JobsTable(const State& state) { return Jobs(state, nullptr, 1); }

std::string WorkersTable(const State& state) {
  std::vector<std::vector<std::string>> rows = {
      {"WORKER", "HOLDS", "HEARD", "STATE", "TAGS"}};
  for (const auto& worker : state.workers()) {
    rows.push_back({worker.address(), absl::StrCat(worker.held()),
                    absl::StrCat(AgeOf(worker.heard_ms_ago()), " ago"),
                    worker.is_draining() ? "drains" : "works",
                    absl::StrJoin(worker.tags(), ",")});
  }
  return rows.size() == 1 ? "No workers.\n" : Table(rows);
}

std::string RegisteredTable(const State& state) {
  std::vector<std::vector<std::string>> rows = {
      {"PIPELINE", "NAMES", "BYTES", "JOBS"}};
  for (const auto& plan : state.registered()) {
    rows.push_back({plan.plan(), absl::StrJoin(plan.names(), ","),
                    absl::StrCat(plan.bytes()), absl::StrCat(plan.jobs())});
  }
  return rows.size() == 1 ? "No registered pipelines.\n" : Table(rows);
}

std::string TopScreen(const State& before, const State& now, double seconds) {
  return absl::StrCat("penstock ", now.version(), ", term ", now.term(), ", ",
                      now.workers_size(), " workers, ", now.jobs_size(),
                      " jobs", now.is_disk_full() ? ", its disk is full" : "",
                      "\n\n", Jobs(now, &before, seconds), "\n",
                      WorkersTable(now));
}

bool IsAdminCommand(const std::string& name) {
  return FindCommand(name) != nullptr;
}

int RunAdmin(const std::string& name, const std::vector<std::string>& args) {
  const Command& command = *FindCommand(name);
  const Schema schema = SchemaOf(command);
  const ReadResult read = ReadSettings(schema, args);
  if (!read.settings) return read.exit_code;
  if (read.settings->words().size() != command.num_words) {
    std::cerr << "penstock " << name << ": expected " << command.words
              << "\nTry `penstock " << name << " --help`.\n";
    return 2;
  }
  const auto client =
      Client::Connect(read.settings->words()[0], *read.settings);
  const absl::Status status =
      client.ok() ? Act(name, *client, *read.settings) : client.status();
  if (status.ok()) return 0;
  std::cerr << "penstock " << name << ": " << status.message() << "\n";
  return 1;
}

}  // namespace penstock
