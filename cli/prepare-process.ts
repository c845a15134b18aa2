import { makeRoomForFiles } from '../api/devices/file-table.ts';
import { keepCompiled } from '../api/keep-compiled.ts';

/**
 * Prepares this process for a command, before the command is loaded. `installed`: false when running from
 * sources, whose compiled code is not stored.
 */
export function prepareProcess(installed: boolean): void {
  if (installed) keepCompiled();
  makeRoomForFiles();
  outliveWorkingFolder();
}

/**
 * In a working folder that was removed, process.cwd() throws, also for code that handles only absolute paths.
 * The folder's last name does as well there: relative paths are below it, where nothing exists.
 */
function outliveWorkingFolder(): void {
  try {
    process.cwd();
  } catch {
    const folder = process.env.PWD ?? '/removed';
    process.cwd = () => folder;
  }
}
