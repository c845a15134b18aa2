import { UsageError } from '../../engine/errors.ts';

/** Similarity of two vectors a and b: a·b / (‖a‖ ‖b‖), or a·b. */
export type Similarity = 'cosine' | 'dot';

export function checkSimilarity(value: string): Similarity {
  if (value === 'cosine' || value === 'dot') return value;
  throw new UsageError(`similarity must be cosine or dot, got ${value}`);
}
