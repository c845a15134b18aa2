/** Value of `status` while no row is bad. */
export const NO_ROW = 0xffff_ffff;
/** Limit of an exact solution's residual, relative to ‖b‖. */
export const RESIDUAL_LIMIT = 1e-4;
/**
 * Limit of the deviation from the same number of CG steps in float64, relative to the largest element of x.
 */
export const CG_LIMIT = 1e-4;
/** Like CG_LIMIT, with A in float16: an adapter may round the last bit up or down. */
export const CG_HALF_LIMIT = 4e-3;
/**
 * Like CG_LIMIT, with biases. One eigenvalue of A is then far above the others, so in float32 the search
 * directions lose conjugacy in any implementation.
 */
export const CG_BIAS_LIMIT = 2e-3;
/**
 * Like CG_LIMIT, with an A that tensor cores summed. It is the deviation of the solution that an error in A
 * at the limit for such sums causes.
 */
export const CG_TENSOR_LIMIT = 1e-3;
/**
 * Like CG_TENSOR_LIMIT, with biases. One eigenvalue of A is then far above the others (see CG_BIAS_LIMIT),
 * most of all in rows of thousands of ratings.
 */
export const CG_TENSOR_BIAS_LIMIT = 8e-3;
/** Like CG_LIMIT, for implicit data: one eigenvalue of A, of the Gram matrix, is far above the others. */
export const CG_GRAM_LIMIT = 1e-3;
/**
 * Limit of the residual of exact solutions if rows of θ are multiplied by the roots of weights in float16.
 */
export const ROOTS_LIMIT = 2e-3;
/**
 * Limit of the relative error of sums of products in float32. Each product has a rounding error of about
 * 1e-7 of its value, of either sign.
 */
export const PRODUCT_LIMIT = 2e-6;
