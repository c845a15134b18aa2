import { readFileSync } from 'node:fs';

/**
 * The most resident memory that this process has had, in bytes. Linux keeps getrusage's figure over exec, so
 * that a process begins with the memory of the one that started it; VmHWM is of this program alone.
 */
export function peakMemoryBytes(): number {
  try {
    const kibibytes = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    if (kibibytes !== undefined) return Number(kibibytes) * 1024;
  } catch {
    // Only Linux has the file.
  }
  return process.resourceUsage().maxRSS * 1024;
}
