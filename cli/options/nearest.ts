import { nearestName } from '../../operators/params/nearest-name.ts';
import { flagName } from './option.ts';

/** The flag, key or command most similar to a word; see nearestName. */
export function nearestFlag(word: string, candidates: readonly string[]): string | undefined {
  return nearestName(word, candidates, flagName);
}
