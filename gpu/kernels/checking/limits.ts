export const NO_ROW = 0xffff_ffff;
/** Of the residual in the exact equations, over ‖b‖. */
export const RESIDUAL_LIMIT = 1e-4;
/** Of the largest element of x after as many steps in float64. */
export const CG_LIMIT = 1e-4;
/** The same where A is rounded to float16: an adapter's rounding may go the other way in its last bit. */
export const CG_HALF_LIMIT = 4e-3;
/** With biases A has one eigenvalue far above the others, and float32 loses the directions' conjugacy, in any implementation. */
export const CG_BIAS_LIMIT = 2e-3;
/** Of the largest element of x after as many steps in float64: what SUM_LIMIT allows, seen through the solver. */
export const CG_TENSOR_LIMIT = 1e-3;
/** The same with biases, see CG_BIAS_LIMIT; rows of thousands of ratings have the largest eigenvalues. */
export const CG_TENSOR_BIAS_LIMIT = 8e-3;
/** Sums of float32 errors of rounded products, each about 1e-7 of the product, in both directions. */
export const PRODUCT_LIMIT = 2e-6;
