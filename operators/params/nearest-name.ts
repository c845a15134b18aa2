import { nearest } from '../../engine/nearest.ts';

/** Names of options and flags in other programs. */
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
  titles: 'itemNames',
  top: 'n',
};

/**
 * The candidate that a word probably means: by a name from another program, or by spelling; undefined if none
 * is similar. `inForm` converts a name to the form of the candidates, such as a flag's.
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
