/* The quantile of the normal distribution, with the same bits on every machine. */
#ifndef UCLE_NORMAL_QUANTILE_H
#define UCLE_NORMAL_QUANTILE_H

double normal_quantile(double p);

#endif
