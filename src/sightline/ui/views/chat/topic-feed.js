// @ts-check
/** The topics as the server has them, fetched when first needed and kept in step. */

import { onAnnounced } from "../../kit/api.js";
import { resource } from "../../kit/resource.js";
import { toastError } from "../../kit/toast.js";
import { useEffect } from "../../vendor/preact.js";

const topics = resource("/api/chat/topics", (again) =>
  onAnnounced("chat", (event) => (event.kind === "topics" || (event.kind === "changed" && event.wide)) && again()),
);
let isStarted = false;

/** Fetch them again; the promise is kept once they are here. */
export async function fetchTopics() {
  await topics.refresh();
  if (topics.trouble.value) toastError(topics.trouble.value);
}

/** The topics for a component, null until they are here; the first that needs them has them followed from then on. */
export function useTopics() {
  useEffect(() => {
    if (!isStarted) topics.start();
    isStarted = true;
    void fetchTopics();
  }, []);
  return topics.value.value;
}
