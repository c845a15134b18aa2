/** Value of `status` while no row is bad. */
export const NO_ROW = 0xffff_ffff;
/** Limit of an exact solution's residual, relative to ‖b‖. */
export const RESIDUAL_LIMIT = 1e-4;
/**
 * Limit of the deviation from the same number of CG steps in float64, relative to the largest element of x.
 */
export const CG_LIMIT = 1e-4;
/** The same with A in float16: an adapter may round the last bit either way. */
export const CG_HALF_LIMIT = 4e-3;
/**
 * The same with biases: one eigenvalue of A is far above the others, so in float32 the directions lose
 * conjugacy in any implementation.
 */
export const CG_BIAS_LIMIT = 2e-3;
/**
 * The same with A from tensor cores: the deviation of the solution that follows from their limit for sums.
 */
export const CG_TENSOR_LIMIT = 1e-3;
/**
 * The same with A from tensor cores and biases, see CG_BIAS_LIMIT; rows of thousands of ratings have the
 * largest eigenvalues.
 */
export const CG_TENSOR_BIAS_LIMIT = 8e-3;
/**
 * Limit of products and their sums in float32: each product is rounded by about 1e-7 of itself, up or down.
 */
export const PRODUCT_LIMIT = 2e-6;
