#include "acc/metric.h"

#define ROW(name) extern const struct acc_metric acc_metric_##name;
#include "metric/table.h"
#undef ROW

const struct acc_metric *const acc_metrics[] = {
#define ROW(name) &acc_metric_##name,
#include "metric/table.h"
#undef ROW
};
const size_t acc_nmetrics = sizeof acc_metrics / sizeof *acc_metrics;

const struct acc_metric *
acc_metric_find(const char *name)
{
	for (size_t i = 0; i < acc_nmetrics; i++) {
		const char *n = acc_metrics[i]->name;
		if (strcmp(n, name) == 0 || (n[0] == 'm' && strcmp(n + 2, name) == 0))
			return acc_metrics[i];
	}
	return NULL;
}

bool
acc_metric_preset(const char *name, enum acc_metric_preset *out)
{
	static const struct {
		const char *name;
		enum acc_metric_preset p;
	} table[] = {{"msprobe", ACC_PRESET_MSPROBE}, {"msprobe-26", ACC_PRESET_MSPROBE26},
		{"msprobe-8.3", ACC_PRESET_MSPROBE83}, {"ptdbg", ACC_PRESET_PTDBG},
		{"msaccucmp", ACC_PRESET_MSACCUCMP}};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (strcmp(table[i].name, name) == 0) {
			*out = table[i].p;
			return true;
		}
	return false;
}
