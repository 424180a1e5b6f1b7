#include "penstock/tuner/offer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::tuner {
namespace {

// As good as the best: then the smaller one.
constexpr double kAsGood = 0.99;

bool IsEnough(const PassWork& work) {
  return work.cpu_ns > 0 && (work.bundles >= 2 ||
                             (work.bundles == 1 && work.bundles_in_pass == 1));
}

// Passes are as many times as large as what was seen of this one.
double TimesAll(const PassWork& work) {
  return std::max(1.0, static_cast<double>(work.bundles_in_pass) /
                           static_cast<double>(work.bundles));
}

struct Bytes {
  double low;
  double high;
};

// Two standard errors to either side; none once all was seen.
Bytes AllBytes(const PassWork& work, const KeptPlace& place) {
  const auto n = static_cast<double>(work.bundles);
  const double all = TimesAll(work) * n;
  const double mean = place.bytes / n;
  const double variance =
      n > 1 ? std::max(0.0, place.bytes_squared / n - mean * mean) * n / (n - 1)
            : 0;
  const double error =
      2 * all * std::sqrt(variance / n) * std::sqrt(1 - n / all);
  return {std::max(place.bytes, all * mean - error), all * mean + error};
}

double Spared(const KeptPlace& place) {
  return place.cpu_ns - kReadNanosPerByte * place.bytes;
}

bool IsWorthIt(const PassWork& work, const KeptPlace& place) {
  const double spared = Spared(place);
  return spared >= kLeastShare * work.cpu_ns &&
         spared * TimesAll(work) >= kLeastSeconds * 1e9;
}

std::string SizeText(const Bytes& bytes) {
  const auto text = [](double value) {
    return value < 1e9 ? absl::StrFormat("%.3g MB", value / 1e6)
                       : absl::StrFormat("%.3g GB", value / 1e9);
  };
  const std::string low = text(bytes.low);
  const std::string high = text(bytes.high);
  return low == high ? high : absl::StrCat(low, " to ", high);
}

std::string WhereOf(const KeptPlace& place) {
  if (place.file.empty()) return place.node;
  return absl::StrCat(place.node, " (", place.file, ":", place.line, ")");
}

const KeptPlace* BestOf(const PassWork& work, bool KeptPlace::*may_be,
                        double most_bytes) {
  const KeptPlace* best = nullptr;
  for (const KeptPlace& place : work.places) {
    if (!(place.*may_be) || !IsWorthIt(work, place) ||
        AllBytes(work, place).high > most_bytes) {
      continue;
    }
    const bool is_better =
        best == nullptr || Spared(place) * kAsGood > Spared(*best) ||
        (Spared(place) > Spared(*best) * kAsGood && place.bytes < best->bytes);
    if (is_better) best = &place;
  }
  return best;
}

}  // namespace

std::optional<plan::Offer> OfferToKeep(const PassWork& work,
                                       const std::string& why) {
  if (!IsEnough(work)) return std::nullopt;
  const KeptPlace* file =
      BestOf(work, &KeptPlace::is_in_shares, kMostFileBytes);
  const KeptPlace* memory = BestOf(work, &KeptPlace::is_last, kMostMemoryBytes);
  const KeptPlace* best = file != nullptr ? file : memory;
  if (best == nullptr) return std::nullopt;
  plan::Offer offer;
  offer.set_why(why);
  std::string advice;
  if (file != nullptr) {
    advice =
        absl::StrCat("put .snapshot(\"/shared/path\") after ", WhereOf(*file));
  }
  if (memory != nullptr) {
    absl::StrAppend(&advice, advice.empty() ? "put" : ", or",
                    " .cache() after distribute(), where the trainer has ",
                    SizeText(AllBytes(work, *memory)), " of memory for it");
  }
  offer.set_advice(advice);
  offer.set_node(best->node);
  const Bytes bytes = AllBytes(work, *best);
  offer.set_bytes_low(bytes.low);
  offer.set_bytes_high(bytes.high);
  offer.set_cpu_seconds(Spared(*best) * TimesAll(work) / 1e9);
  offer.set_cpu_share(std::min(1.0, Spared(*best) / work.cpu_ns));
  return offer;
}

std::optional<plan::Offer> OfferToShare(const PassWork& work,
                                        const std::string& why) {
  if (!IsEnough(work) || work.cpu_ns * TimesAll(work) < kLeastSeconds * 1e9) {
    return std::nullopt;
  }
  plan::Offer offer;
  offer.set_why(why);
  offer.set_advice("give both share=\"auto\" in distribute()");
  offer.set_cpu_seconds(work.cpu_ns * TimesAll(work) / 1e9);
  offer.set_cpu_share(1);
  return offer;
}

}  // namespace penstock::tuner
