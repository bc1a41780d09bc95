// SPDX-License-Identifier: MIT
#include "common/service/service_state.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#define SERVICE_METRICS(M)                                                                                   \
    M(build_info, GAUGE, "dunlin_build_info", "", "service,version", "Always 1; the labels tell what runs.", \
        "More than one version at a time: a roll-out is under way, or stuck.")                               \
    M(ready, GAUGE, "dunlin_ready", "0 or 1", NULL, "Whether /readyz says yes.",                             \
        "At 0, /readyz and the log name the part and the reason.")                                           \
    M(start_time, GAUGE, "process_start_time_seconds", "Unix seconds", NULL, "When the process started.",    \
        "Moves often: the process restarts; look at the end of its log before.")                             \
    M(resident, GAUGE, "process_resident_memory_bytes", "bytes", NULL, "Memory in use.",                     \
        "A steady rise without end is a leak: report it with the version.")                                  \
    M(open_fds, GAUGE, "process_open_fds", "descriptors", NULL, "Open file descriptors.",                    \
        "Near the limit (ulimit -n) connections are refused: raise it, or look for clients that never "      \
        "close.")

const struct metric_family service_metrics[] = {SERVICE_METRICS(METRIC_ROW)};
const size_t service_metrics_count = ARRAY_LEN(service_metrics);
enum service_metric {
    SERVICE_METRIC_BUILD_INFO,
    SERVICE_METRIC_READY,
    SERVICE_METRIC_START_TIME,
    SERVICE_METRIC_RESIDENT,
    SERVICE_METRIC_OPEN_FDS,
};

static int64_t read_resident(void *arg) {
    (void)arg;
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    char line[128];
    if (fgets(line, sizeof line, file) == NULL || sscanf(line, "%*s %lld", &pages) != 1)
        pages = 0;
    (void)fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static int64_t read_open_fds(void *arg) {
    (void)arg;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 0;
    int64_t count = -3; // ".", ".." and the folder itself
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

struct metric *service_metrics_add(const struct service *service) {
    metric_set(metric_add(&service_metrics[SERVICE_METRIC_BUILD_INFO], service->name, DUNLIN_VERSION), 1);
    metric_set(metric_add(&service_metrics[SERVICE_METRIC_START_TIME]), base_wall_us() / US_PER_S);
    metric_add_read(&service_metrics[SERVICE_METRIC_RESIDENT], read_resident, NULL);
    metric_add_read(&service_metrics[SERVICE_METRIC_OPEN_FDS], read_open_fds, NULL);
    return metric_add(&service_metrics[SERVICE_METRIC_READY]);
}
