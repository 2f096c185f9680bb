import { useEffect } from "preact/hooks";
import { sessionState, startSession } from "./session";
import { Shell } from "./shell";
import { SignIn } from "./sign-in";
import { useStore } from "./store";

const RETRY_MS = 2000;

function Unreachable({ message }: { message: string }) {
  useEffect(() => {
    const timer = setInterval(() => void startSession(), RETRY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <main class="sign-in">
      <p role="alert">Cannot reach the server: {message}. The page tries again every two seconds.</p>
    </main>
  );
}

export function App() {
  const now = useStore(sessionState);
  switch (now.state) {
    case "unknown":
      return null; // the answer comes within milliseconds
    case "unreachable":
      return <Unreachable message={now.message} />;
    case "out":
      return <SignIn message={now.message} />;
    case "in":
      return <Shell key={now.session.key_id} session={now.session} />;
  }
}
