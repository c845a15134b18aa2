import type { Progress } from './progress.ts';

/** Bars on a terminal, plain lines elsewhere, warnings alone when quiet. */
export async function openProgress(quiet: boolean, write: (line: string) => void): Promise<Progress> {
  if (quiet) return (await import('./lines.ts')).quietProgress(write);
  const isTerminal = process.stderr.isTTY && process.env.TERM !== 'dumb';
  return isTerminal ? (await import('./bars.ts')).barProgress(process.stderr) : (await import('./lines.ts')).lineProgress(write);
}
