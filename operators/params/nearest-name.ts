import { nearest } from '../../engine/nearest.ts';

/** Names of options and flags in other programs, and the names of the same parameters here. */
const synonyms: Readonly<Record<string, string>> = {
  factors: 'rank',
  implicit: 'implicitPrefs',
  implicitprefs: 'implicitPrefs',
  iterations: 'maxIter',
  epochs: 'maxIter',
  lambda: 'regParam',
  regularization: 'regParam',
  model: 'modelDir',
  output: 'modelDir',
  time: 'timestamp',
  titles: 'itemNames',
  top: 'n',
};

/**
 * The candidate that an unknown word probably means: the one that has this name in another program, else the
 * one with the most similar spelling; undefined if none is similar. `inForm` converts a parameter's name to
 * the form of the candidates, such as a flag's.
 */
export function nearestName(
  word: string,
  candidates: readonly string[],
  inForm: (name: string) => string = (name) => name,
): string | undefined {
  const key = word.toLowerCase().replaceAll('-', '');
  const name = Object.hasOwn(synonyms, key) ? inForm(synonyms[key]) : undefined;
  return candidates.find((candidate) => inForm(candidate) === name) ?? nearest(word, candidates);
}
