import type { Progress } from './progress.ts';

/** Bars on a terminal, plain lines elsewhere, warnings alone when quiet. */
export async function openProgress(quiet: boolean): Promise<Progress> {
  const write = (line: string) => void process.stderr.write(`${line}\n`);
  if (quiet) return (await import('./lines.ts')).quietProgress(write);
  const isTerminal = process.stderr.isTTY && process.env.TERM !== 'dumb';
  return isTerminal ? (await import('./bars.ts')).barProgress(process.stderr) : (await import('./lines.ts')).lineProgress(write);
}
