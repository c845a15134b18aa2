/** Biases with λ n alone, for tests of the mathematics: the defaults add a damping and an offset. */
export const undamped = { biases: true, regParam: 0.1, regOffset: 0, biasDamping: 0 } as const;

/** Factors alone, from Spark's start: ALS.spark. */
export const plain = { biases: false, regParam: 0.1, start: 'spark' } as const;
