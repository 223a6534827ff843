const form = document.getElementById("enter");
const status = document.getElementById("status");

async function enter(token) {
	const answer = await fetch("open", {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: JSON.stringify({ token }),
	});
	if (answer.ok) {
		location.replace("./");
		return;
	}
	status.textContent =
		"This link was used already, is too old, or is wrong. Start the command again for a new one.";
	form.hidden = false;
}

form.addEventListener("submit", (event) => {
	event.preventDefault();
	enter(document.getElementById("token").value);
});

// The secret leaves the address, and so the history of the browser, before it is used.
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);
if (token) {
	enter(token);
} else {
	status.textContent = "Give the token.";
	form.hidden = false;
}
