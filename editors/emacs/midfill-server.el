;;; midfill-server.el --- midfill's own connection -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server's process, which buffers it knows, and what it says.  Must not
;; know what is on the screen.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'midfill-connection)
(require 'midfill-sync)

(defgroup midfill nil
  "Suggestions at the cursor, by the language server midfill."
  :group 'convenience
  :prefix "midfill-")

;; Both are read where no file or directory can set them: `default-value'.

(defcustom midfill-server-command nil
  "The server and its arguments; nil is the first midfill that is found.
Looked at are the variable `exec-path', the folder .venv of the repository
that this file lies in, and ~/.local/bin."
  :type '(choice (const :tag "Find it" nil) (repeat string))
  :risky t)

(defcustom midfill-settings nil
  "Settings of the server, an alist of alists.
The names are those of docs/configuration.md in camelCase, such
as ((completion . ((multiline . \"never\")))); false is :json-false.
A server that runs is told with \\[midfill-restart]."
  :type '(alist :key-type symbol :value-type sexp)
  :risky t)

(defconst midfill-server--most-restarts 3
  "In a row, without a suggestion in between.")

(defconst midfill-server--root-markers
  '(".midfill.toml" ".git" ".hg" "pyproject.toml" "package.json" "Cargo.toml" "go.mod")
  "What makes a folder that of a project.")

(defconst midfill-server--here
  (file-name-directory (file-truename (or load-file-name buffer-file-name default-directory)))
  "The folder of this file.")

(defclass midfill-server (jsonrpc-process-connection)
  ((capabilities :initform nil :documentation "What the server offers; nil before it has told.")
   (folders :initform nil :initarg :folders :documentation "Roots that the server knows.")
   (processes :initform nil :documentation "The server's process, and the one that reads its log."))
  "A connection that midfill has started itself.")

(defvar midfill-server-own nil "The connection that midfill has started itself.")
(defvar midfill-server-problem nil "The last warning of the server.")
(defvar midfill-server-busy nil "What the server is doing, such as loading a model.")
(defvar midfill-server-ready-hook nil "Run when our own server can be asked.")
(defvar midfill-server-stopped nil "Whether the user has stopped the server.")
(defvar midfill-server--restarts 0 "Since the last suggestion.")
(defvar midfill-server--told-missing nil "Whether the user knows that there is no server.")

(defvar midfill-server-buffers-function #'ignore
  "Gives the buffers that want suggestions.")

(cl-defgeneric midfill-server-restart (_connection)
  "Start the server of a connection anew; nil is that of our own."
  (midfill-server-stop t))

(cl-defmethod midfill-connection-sync ((_ midfill-server))
  "Send the changes of the current buffer."
  (midfill-sync-send)
  (list (midfill-document-uri midfill-sync-document) "utf-32"))

(defun midfill-server-connection ()
  "The connection that can be asked for suggestions in the current buffer, or nil."
  (pcase (midfill-connection-other)
    ('nil (and midfill-sync-document midfill-server-own))
    ('t nil)
    (other other)))

;;; The process

(defun midfill-server--repository ()
  "The folder of the repository that this file lies in, or nil."
  (let ((above (expand-file-name "../.." midfill-server--here)))
    (and (file-exists-p (expand-file-name "editors/emacs/midfill-server.el" above))
         (file-exists-p (expand-file-name "pyproject.toml" above))
         above)))

(defun midfill-server-find-command ()
  "The server and its arguments, or nil if none is found."
  (or (default-value 'midfill-server-command)
      (let* ((windows (eq system-type 'windows-nt))
             (name (if windows "midfill.exe" "midfill"))
             (repository (midfill-server--repository))
             (venv (and repository (expand-file-name (if windows ".venv/Scripts" ".venv/bin") repository)))
             (found (or (executable-find "midfill")
                        (locate-file name (delq nil (list venv "~/.local/bin")) nil 'executable))))
        (and found (list found)))))

(defun midfill-server-installation ()
  "How to install the server: the end of a sentence."
  (let ((clone (midfill-server--repository)))
    (format "%s: %s \"%s[local]\"" (if clone "run" "in a clone of midfill run")
            (if (executable-find "uv") "uv tool install" "pipx install") (or clone "."))))

(defun midfill-server--root ()
  "The folder of the current buffer's project, or nil."
  (when-let* ((root (locate-dominating-file
                    (file-name-directory buffer-file-name)
                    (lambda (folder)
                      (cl-some (lambda (name) (file-exists-p (expand-file-name name folder)))
                               midfill-server--root-markers)))))
    (directory-file-name (expand-file-name root))))

(defun midfill-server--folder (root)
  "ROOT as a workspace folder."
  (list :uri (midfill-sync-uri root) :name (file-name-nondirectory root)))

(defun midfill-server-json-settings ()
  "The settings as they are sent."
  (or (default-value 'midfill-settings) (make-hash-table)))

(defun midfill-server--run (command)
  "Start COMMAND.  Return its process and the one that fills the log."
  (let* ((default-directory (expand-file-name "~/")) ; not one that may hold a program of this name
         (log (make-pipe-process :name "midfill log" :noquery t :coding 'utf-8 :sentinel #'ignore
                                 :filter (lambda (_ text) (midfill-server-log text)))))
    (condition-case failed
        (list (make-process :name "midfill" :command command :connection-type 'pipe :noquery t
                            :coding 'utf-8-emacs-unix :stderr log)
              log)
      (error (delete-process log)
             (signal (car failed) (cdr failed))))))

(defvar midfill-server--count 0 "How many were started.")

(defun midfill-server--name ()
  "A name for the next connection; jsonrpc names buffers after it."
  (format "midfill %d" (cl-incf midfill-server--count)))

(defun midfill-server--no-events ()
  "Arguments for a connection that does not keep all messages: they hold the text."
  (if (slot-exists-p 'jsonrpc-connection '-events-buffer-config) ; jsonrpc 1.0.18 and newer
      '(:events-buffer-config (:size 0 :format full))
    '(:events-buffer-scrollback-size 0)))

(defun midfill-server--make (command)
  "Start COMMAND, give the connection to it."
  (let* ((root (midfill-server--root))
         (processes (midfill-server--run command))
         (connection (apply #'make-instance
                            'midfill-server
                            :name (midfill-server--name)
                            :folders (and root (list root))
                            :process (car processes)
                            :notification-dispatcher #'midfill-server--notified
                            :request-dispatcher #'midfill-server--asked
                            :on-shutdown #'midfill-server--ended
                            (midfill-server--no-events))))
    (setf (slot-value connection 'processes) processes)
    connection))

(defun midfill-server--initialize (connection)
  "Shake hands with the server of CONNECTION."
  (let ((folders (mapcar #'midfill-server--folder (slot-value connection 'folders))))
    (midfill-connection-request
     connection :initialize
     `(:processId ,(emacs-pid)
       :clientInfo (:name "midfill.el" :version ,emacs-version)
       :rootUri ,(plist-get (car folders) :uri)
       :workspaceFolders ,(vconcat folders)
       :initializationOptions ,(midfill-server-json-settings)
       :capabilities (:general (:positionEncodings ["utf-32"])
                      :textDocument (:inlineCompletion (:dynamicRegistration :json-false)
                                     :synchronization (:didSave t))
                      :window (:workDoneProgress t)
                      :workspace (:workspaceFolders t)))
     (lambda (result)
       (setf (slot-value connection 'capabilities) (plist-get result :capabilities))
       (setq midfill-server-problem nil)
       (midfill-connection-notify connection :initialized (make-hash-table))
       (when (eq connection midfill-server-own)
         (midfill-server-attach-all)
         (run-hooks 'midfill-server-ready-hook)
         (force-mode-line-update t)))
     (lambda (failed)
       (when (and (eq connection midfill-server-own) (jsonrpc-running-p connection)) ; else its end is told of
         (setq midfill-server-problem (plist-get failed :message))
         (message "midfill: %s" midfill-server-problem)
         (force-mode-line-update t))))))

(defun midfill-server--start ()
  "Start the server."
  (let ((command (midfill-server-find-command)))
    (condition-case nil
        (setq midfill-server-own (midfill-server--make (or command (signal 'file-missing nil))))
      (:success (midfill-server--initialize midfill-server-own))
      (file-error (midfill-server--tell-missing (car command))))))

(defun midfill-server--tell-missing (program)
  "Say that there is no server, or not the given PROGRAM, and how to install one."
  (setq midfill-server-problem "the server is not installed")
  (unless midfill-server--told-missing
    (setq midfill-server--told-missing t)
    (message "midfill: the server is not installed%s; %s"
             (if program (format " (%s cannot be run)" program) "")
             (midfill-server-installation))))

(defun midfill-server-wanted-p ()
  "Whether the current buffer is that of a file on this machine."
  (and buffer-file-name (not (file-remote-p buffer-file-name)) (not (buffer-base-buffer))))

(defun midfill-server-attach ()
  "Let our own server know the current buffer, and start it if it does not run.
If another connection has the buffer, leave it to that."
  (midfill-connection-join)
  (cond ((not (midfill-server-wanted-p)))
        ((midfill-connection-other)
         (when midfill-sync-document ; it came after our own
           (midfill-sync-close)
           (unless (midfill-server--documents)
             (midfill-server--end))))
        ((or midfill-server-stopped midfill-sync-document
             (> midfill-server--restarts midfill-server--most-restarts)))
        ((not midfill-server-own) (midfill-server--start))
        ((slot-value midfill-server-own 'capabilities)
         (midfill-server--add-folder)
         (midfill-sync-open midfill-server-own))))

(defun midfill-server--documents ()
  "The buffers that our own server knows."
  (cl-remove-if-not (lambda (buffer) (buffer-local-value 'midfill-sync-document buffer)) (buffer-list)))

(defun midfill-server-attach-all ()
  "Let our own server know all buffers that want suggestions."
  (dolist (buffer (funcall midfill-server-buffers-function))
    (with-current-buffer buffer
      (midfill-server-attach))))

(defun midfill-server--add-folder ()
  "Tell the server of the current buffer's folder, if it is another project."
  (let ((root (midfill-server--root)))
    (unless (or (not root) (member root (slot-value midfill-server-own 'folders)))
      (push root (slot-value midfill-server-own 'folders))
      (midfill-connection-notify
       midfill-server-own :workspace/didChangeWorkspaceFolders
       `(:event (:added [,(midfill-server--folder root)] :removed []))))))

;;; Its end

(defconst midfill-server--end-s 5
  "Seconds that a server has for ending by itself.")

(defun midfill-server--forget ()
  "Forget our own connection and what its server knew."
  (setq midfill-server-busy nil)
  (dolist (buffer (midfill-server--documents))
    (with-current-buffer buffer
      (midfill-sync-close)))
  (setq midfill-server-own nil))

(defun midfill-server--end ()
  "End our own server, without waiting for it."
  (when-let* ((connection midfill-server-own))
    (midfill-server--forget)
    (when (jsonrpc-running-p connection)
      (run-at-time midfill-server--end-s nil #'delete-process (car (slot-value connection 'processes)))
      (midfill-connection-request connection :shutdown nil
                              (lambda (_) (midfill-connection-notify connection :exit nil))))))

(defun midfill-server--tidy (connection)
  "Take away what the ended CONNECTION leaves."
  (mapc #'delete-process (slot-value connection 'processes))
  (dolist (buffer (list (process-buffer (car (slot-value connection 'processes)))
                        (jsonrpc-stderr-buffer connection)
                        (jsonrpc-events-buffer connection)))
    (when (buffer-live-p buffer)
      (kill-buffer buffer))))

(defun midfill-server-stop (again)
  "End our own server; AGAIN: then start it anew."
  (setq midfill-server-stopped (not again) midfill-server--restarts 0
        midfill-server-problem nil midfill-server--told-missing nil)
  (midfill-server--end)
  (when again
    (midfill-server-attach-all)))

(defun midfill-server--ended (connection)
  "Start the server again if that of CONNECTION has ended by itself."
  (run-at-time 0 nil #'midfill-server--tidy connection)
  (when (eq connection midfill-server-own)
    (midfill-server--forget)
    (cl-incf midfill-server--restarts)
    (let ((ending (format "the server ended with status %s"
                          (process-exit-status (car (slot-value connection 'processes))))))
      (if (<= midfill-server--restarts midfill-server--most-restarts)
          (message "midfill: %s, and is started again" ending)
        (setq midfill-server-problem (format "%s, %d times in a row" ending midfill-server--restarts))
        (message "midfill: %s; see M-x midfill-log, then M-x midfill-restart" midfill-server-problem)))
    (run-at-time 0 nil #'midfill-server-attach-all)))

;;; What the server says

(defconst midfill-server-log "*midfill log*"
  "Name of the buffer with the log.")

(defconst midfill-server--most-log 200000
  "Characters that are kept of the log.")

(defun midfill-server-log (text)
  "Keep TEXT for the user to read."
  (with-current-buffer (get-buffer-create midfill-server-log)
    (buffer-disable-undo)
    (save-excursion
      (goto-char (point-max))
      (insert text)
      (delete-region (point-min) (max (point-min) (- (point-max) midfill-server--most-log))))))

(defun midfill-server-warned (type text)
  "Note TEXT, a message of TYPE for the user."
  (when (and (numberp type) (<= type 2))
    (setq midfill-server-problem text)
    (force-mode-line-update t)))

(defun midfill-server--notified (_connection method params)
  "Take the notification METHOD with PARAMS."
  (let ((text (plist-get params :message)))
    (pcase method
      ('window/logMessage (midfill-server-log (concat text "\n")))
      ('window/showMessage
       (midfill-server-log (concat text "\n"))
       (midfill-server-warned (plist-get params :type) text)
       (message "%s" text))
      ('$/progress
       (let ((value (plist-get params :value)))
         (pcase (plist-get value :kind)
           ("begin" (setq midfill-server-busy (string-remove-prefix "midfill: " (plist-get value :title))))
           ("end" (setq midfill-server-busy nil)))
         (force-mode-line-update t))))))

(defun midfill-server--asked (_connection method _params)
  "Answer the request METHOD: for a place to show progress.
Nothing else is declared."
  (unless (eq method 'window/workDoneProgress/create)
    (jsonrpc-error :code -32601 :message "no such method")))

(defun midfill-server-shown (connection item)
  "Tell CONNECTION that ITEM is shown."
  (setq midfill-server--restarts 0 midfill-server-problem nil)
  (midfill-connection-notify connection :textDocument/didShowCompletion `(:item ,item)))

(provide 'midfill-server)
;;; midfill-server.el ends here
