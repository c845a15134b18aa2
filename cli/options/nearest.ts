import { nearest } from '../../engine/nearest.ts';
import { flagName } from './option.ts';

/** Flags by their names in other programs. */
const synonyms: Readonly<Record<string, string>> = {
  model: 'model-dir',
  lambda: 'reg-param',
  regularization: 'reg-param',
  iterations: 'max-iter',
  epochs: 'max-iter',
  factors: 'rank',
};

/** The candidate nearest to a word, by a name from another program or by its letters; undefined when none is near. */
export function nearestFlag(word: string, candidates: readonly string[]): string | undefined {
  const meant = Object.hasOwn(synonyms, word.toLowerCase()) ? candidates.find((candidate) => flagName(candidate) === synonyms[word.toLowerCase()]) : undefined;
  return meant ?? nearest(word, candidates);
}
