import { closeSync, readSync } from 'node:fs';
import { UsageError } from '../../engine/errors.ts';
import { openRegular } from '../../engine/regular-file.ts';
import type { ProfileReport } from '../../api/reports/profile.ts';
import { checkWholeFile, writeWholeFile } from '../../api/output/whole-file.ts';
import { GENERATOR } from './generator.ts';
import type { Report } from './section.ts';

/** Bytes to read when looking for the mark. */
const HEAD = 256;

/** Checks before the work that the report can be written. Only an earlier report is ever replaced. */
export async function checkReport(path: string): Promise<void> {
  if (!/\.html?$/i.test(path))
    throw new UsageError(`--report takes the name of an HTML file, got ${JSON.stringify(path)}`, {
      advice: 'End it in .html',
    });
  await checkWholeFile(path, isReport(path));
}

function isReport(path: string): boolean {
  try {
    const { fd } = openRegular(path);
    const head = Buffer.alloc(HEAD);
    readSync(fd, head);
    closeSync(fd);
    return head.toString('latin1').includes(GENERATOR);
  } catch {
    // The check of outputs rejects files that are not regular, or not readable.
    return false;
  }
}

/** Writes the page, with the parts that all pages have: time, machine, command. Completely or not at all. */
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
