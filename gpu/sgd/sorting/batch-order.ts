import { CounterRandom } from '../../../engine/random.ts';

/**
 * Draws an order of an epoch's batches that needs no memory: the i-th batch to process has the number (i *
 * multiplier + offset) mod n. Every batch occurs once, since the multiplier is a prime greater than n, or 1
 * if no such prime is in range.
 */
export function batchOrder(
  mostBatches: number,
  seed: number,
  epoch: number,
): { readonly multiplier: number; readonly offset: number } {
  const random = new CounterRandom(seed, 0x7113).derive(epoch);
  // The limit keeps i * multiplier + offset within 32 bits.
  const largest = Math.min(2 ** 20, Math.floor((2 ** 32 - 2 ** 20) / Math.max(1, mostBatches)));
  const least = mostBatches + 1;
  const offset = random.below(1, 2 ** 20);
  if (largest <= least) return { multiplier: 1, offset };
  for (let candidate = least + random.below(0, largest - least); candidate <= largest; candidate++)
    if (isPrime(candidate)) return { multiplier: candidate, offset };
  for (let candidate = least; candidate <= largest; candidate++)
    if (isPrime(candidate)) return { multiplier: candidate, offset };
  return { multiplier: 1, offset };
}

function isPrime(number: number): boolean {
  if (number < 2) return false;
  for (let divisor = 2; divisor * divisor <= number; divisor++) if (number % divisor === 0) return false;
  return true;
}
