import { open } from 'node:fs/promises';
import { UsageError } from '../../engine/errors.ts';
import type { ProfileReport } from '../../api/reports/profile.ts';
import { checkWholeFile, writeWholeFile } from '../../api/output/whole-file.ts';
import { GENERATOR } from './generator.ts';
import type { Report } from './section.ts';

/** Bytes that are read to find the mark. */
const HEAD = 256;

/**
 * Checks before the work that the report can be written. Another file than an earlier report is never
 * replaced.
 */
export async function checkReport(path: string): Promise<void> {
  if (!/\.html?$/i.test(path))
    throw new UsageError(`--report takes the name of an HTML file, got ${JSON.stringify(path)}`, {
      advice: 'End it in .html',
    });
  await checkWholeFile(path, await isReport(path));
}

async function isReport(path: string): Promise<boolean> {
  // A folder, or a file that may not be read, is refused by the check of outputs.
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return false;
  try {
    if (!(await file.stat()).isFile()) return false;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD), 0, HEAD, 0);
    return buffer.toString('latin1', 0, bytesRead).includes(GENERATOR);
  } finally {
    await file.close();
  }
}

/**
 * Writes the page, with the parts that every page has: the time, the machine, the command. Whole or not at
 * all.
 */
export async function writeReport(
  path: string,
  { title, lead, warnings, sections, adapter }: Report,
  profile: ProfileReport,
  argv: readonly string[],
): Promise<void> {
  const [{ pageOf }, { timeSection }, { environmentSection }] = await Promise.all([
    import('./page.ts'),
    import('./sections/time.ts'),
    import('./sections/environment.ts'),
  ]);
  const text = pageOf({
    title,
    lead,
    warnings,
    sections: [
      ...sections,
      ...(profile.phases.length > 1 ? [timeSection(profile)] : []),
      environmentSection(argv, adapter ?? null),
    ],
  });
  await writeWholeFile(path, text, await isReport(path));
}
